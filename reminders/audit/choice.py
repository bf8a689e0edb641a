"""Which rows an audit looks at: what is active, recent, open, and next in turn; or all of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings

from reminders.audit.registry import Check
from reminders.audit.sql import results, rows
from reminders.states import Subject

# Rows of one kind that one statement looks at.
CHUNK: Final = 2_000
# What committed while the last run was looking may carry an earlier time; as long as a transaction may take.
OVERLAP: Final = timedelta(minutes=2)
# After a long pause only the last day counts as recent, and of that the newest rows of each kind; the
# slices come to the rest.
LONGEST_PAUSE: Final = timedelta(days=1)
RECENT: Final = 20_000


@dataclass(frozen=True, slots=True)
class Source:
    """A kind of subject: its table, the name it has in queries, what says that a row is recent, and its team."""

    table: str
    alias: str
    recent: str
    team: str
    join: str = ""


SOURCES: Final = {
    Subject.TASK: Source("reminders_task", "task", "task.finished_at", "task.team_id"),
    Subject.TICKET: Source("tickets_ticket", "ticket", "ticket.updated_at", "ticket.team_id"),
    Subject.NOTICE: Source(
        "notifications_remindernotification",
        "notice",
        "notice.created_at",
        "ticket.team_id",
        "JOIN tickets_ticket AS ticket ON ticket.id = notice.ticket_id",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What one audit looks at. `team_id` None: all teams. `recent_only`: no slice of what is stored."""

    checks: Sequence[Check]
    team_id: int | None = None
    full: bool = False
    recent_only: bool = False

    @property
    def kinds(self) -> list[Subject]:
        """The kinds of stored rows that its checks are about."""
        return [
            kind
            for kind in SOURCES
            if any(check.stored and check.subject == kind for check in self.checks)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What earlier runs left: since when, where each slice goes on, and the open findings (code, subject) by id."""

    since: datetime
    cursors: Mapping[str, int]
    open: Mapping[int, tuple[str, int]]
    # Subjects of the open findings, by kind.
    subjects: Mapping[str, set[int]] = field(default_factory=dict)


def known(scope: Scope, *, now: datetime) -> Known:
    """Read what earlier runs left, of the scope's team and checks."""
    last, found = results(
        [
            """
            SELECT started_at, cursors FROM reminders_auditrun
            WHERE finished_at IS NOT NULL AND team_id IS NULL AND codes = '[]' AND errors = '{}'
            ORDER BY id DESC LIMIT 1
            """,
            f"""
            SELECT id, code, subject_kind, subject_id FROM reminders_finding
            WHERE closed_at IS NULL AND code = ANY(%(codes)s) {_of_team("team_id", scope)}
            """,
        ],
        {"codes": [check.code for check in scope.checks], "team": scope.team_id},
    )
    subjects: dict[str, set[int]] = {}
    for row in found:
        subjects.setdefault(row["subject_kind"], set()).add(row["subject_id"])
    return Known(
        since=max(last[0]["started_at"] if last else now, now - LONGEST_PAUSE) - OVERLAP,
        cursors=last[0]["cursors"] if last else {},
        open={row["id"]: (row["code"], row["subject_id"]) for row in found},
        subjects=subjects,
    )


def live(check: Check, scope: Scope) -> str:
    """SQL: the active rows that the check looks at every time."""
    if scope.team_id is None:
        return check.live
    return f"{check.live} {_of_team(SOURCES[check.subject].team, scope)}"


def these(check: Check) -> str:
    """SQL: the rows whose ids are a parameter, as far as the check is about them."""
    of = f"{SOURCES[check.subject].alias}.id = ANY(%(ids_{check.subject})s)"
    return of if check.stored else f"{of} AND {check.live}"


def stored(
    scope: Scope, before: Known, cursors: dict[str, int]
) -> Iterator[dict[Subject, list[int]]]:
    """The ids of the stored rows to look at, in parts with some of each kind. Fills `cursors` with where the slices ended."""
    if scope.full:
        for kind in scope.kinds:
            for part in _all(kind, scope):
                yield {kind: part}
        return
    ids = _chosen(scope, before, cursors)
    for start in range(0, max(map(len, ids.values()), default=0), CHUNK):
        parts = {kind: of[start : start + CHUNK] for kind, of in ids.items()}
        yield {kind: part for kind, part in parts.items() if part}


def _all(kind: Subject, scope: Scope) -> Iterator[list[int]]:
    """Every row of the kind, by id."""
    source, last = SOURCES[kind], 0
    sql = f"""
        SELECT {source.alias}.id FROM {source.table} AS {source.alias} {source.join}
        WHERE {source.alias}.id > %(last)s {_of_team(source.team, scope)}
        ORDER BY {source.alias}.id LIMIT {CHUNK}
    """
    while ids := [row["id"] for row in rows(sql, {"last": last, "team": scope.team_id})]:
        yield ids
        last = ids[-1]


def _chosen(scope: Scope, before: Known, cursors: dict[str, int]) -> dict[Subject, list[int]]:
    """Recent rows, the subjects of open findings, and the next slice, or of one team its newest rows."""
    parameters: dict[str, Any] = {
        "since": before.since,
        "team": scope.team_id,
        "slice": settings.AUDIT_SLICE,
    }
    statements = []
    for kind in scope.kinds:
        source = SOURCES[kind]
        table = f"{source.table} AS {source.alias}"
        if scope.team_id is not None:
            table += f" {source.join}"
        team = _of_team(source.team, scope)
        parameters[f"after_{kind}"] = before.cursors.get(kind, 0)
        statements.append(
            f"""
            SELECT {source.alias}.id FROM {table} WHERE {source.recent} >= %(since)s {team}
            ORDER BY {source.recent} DESC LIMIT {RECENT}
            """
        )
        if scope.recent_only:
            continue
        statements.append(
            f"""
            SELECT {source.alias}.id FROM {table}
            WHERE {source.alias}.id > %(after_{kind})s ORDER BY {source.alias}.id LIMIT %(slice)s
            """
            if scope.team_id is None
            else f"""
            SELECT {source.alias}.id FROM {table} WHERE true {team}
            ORDER BY {source.alias}.id DESC LIMIT %(slice)s
            """
        )
    # Whether an index serves depends on how recent "recent" is.
    found = iter(results(statements, parameters, prepare=False))
    chosen = {}
    for kind in scope.kinds:
        ids = {row["id"] for row in next(found)} | before.subjects.get(kind, set())
        if not scope.recent_only:
            part = [row["id"] for row in next(found)]
            ids.update(part)
            # A slice that is not full has come to the end: the next one begins anew.
            cursors[kind.value] = part[-1] if len(part) == settings.AUDIT_SLICE else 0
        chosen[kind] = sorted(ids)
    if scope.team_id is not None:
        cursors.clear()
    return chosen


def _of_team(column: str, scope: Scope) -> str:
    return "" if scope.team_id is None else f"AND {column} = %(team)s"
