"""Reading: which rows an audit looks at, and what the checks find in them. Writes nothing."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.conf import settings
from django.db import DatabaseError, connection
from redis.exceptions import RedisError

from helpdesk.clock import database_now
from reminders import broker
from reminders.audit.registry import Check, Found
from reminders.models import AuditRun
from reminders.states import Subject

log = structlog.get_logger(__name__)

# PostgreSQL's number of the type; Django leaves its values as text in a bare cursor.
_JSONB: Final = 3802
# Rows of one kind that one statement looks at.
CHUNK: Final = 2_000
# What committed while the last run was looking may carry an earlier time; as long as a transaction may take.
OVERLAP: Final = timedelta(minutes=2)
# Recent rows of one kind that one run looks at, the newest; more than that, and the slices come to the rest.
RECENT: Final = 20_000
# After a long pause only the last day counts as recent; the slices come to the rest.
LONGEST_PAUSE: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Source:
    """A kind of subject: its table, the name it has in queries, what says that a row is recent, and its team."""

    table: str
    alias: str
    recent: str
    team: str
    join: str = ""


_SOURCES: Final = {
    Subject.TASK: _Source("reminders_task", "task", "task.finished_at", "task.team_id"),
    Subject.TICKET: _Source("tickets_ticket", "ticket", "ticket.updated_at", "ticket.team_id"),
    Subject.NOTICE: _Source(
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


@dataclass(slots=True, kw_only=True)
class Looked:
    """What was found, by check; which checks could not be carried out; and where the next slices begin."""

    found: dict[str, list[Found]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    cursors: dict[str, int] = field(default_factory=dict)
    broker: dict[str, Any] = field(default_factory=dict)
    rows: int = 0

    @property
    def complete(self) -> list[str]:
        """Codes of the checks whose open findings were all looked at again."""
        return [code for code in self.found if code not in self.errors]


def look(scope: Scope) -> Looked:
    """Carry out the checks. One that fails is reported and holds up none of the others."""
    looked = Looked(found={check.code: [] for check in scope.checks})
    now = database_now()
    hints = _read_broker(scope, looked)
    for check in scope.checks:
        if check.live and not (check.subject == Subject.BROKER and scope.team_id is not None):
            where = [check.live]
            if scope.team_id is not None:
                where.append(f"{_SOURCES[check.subject].team} = %(team)s")
            _try(check, looked, " AND ".join(where), {"now": now, "team": scope.team_id, **hints})
    for subject, ids in _chunks(scope, looked, now):
        looked.rows += len(ids)
        for check in scope.checks:
            if check.stored and check.subject == subject:
                _try(check, looked, _only(check), {"now": now, "ids": ids})
        if scope.full:
            now = database_now()
    for code, found in looked.found.items():
        looked.found[code] = list({each.subject_id: each for each in found}.values())
    return looked


def look_again(check: Check, ids: Collection[int], *, now: datetime) -> list[Found]:
    """What the check finds in these rows alone."""
    return list(_findings(check, _only(check), {"now": now, "ids": list(ids)}))


def _try(check: Check, looked: Looked, where: str, parameters: Mapping[str, Any]) -> None:
    if check.code in looked.errors:
        return
    try:
        looked.found[check.code] += _findings(check, where, parameters)
    except (DatabaseError, LookupError, TypeError, ValueError) as error:
        looked.errors[check.code] = f"{type(error).__name__}: {error}"
        log.exception("audit.check_failed", check=check.code)


def _findings(check: Check, where: str, parameters: Mapping[str, Any]) -> Iterator[Found]:
    for row in _rows(check.query.format(scope=where), parameters):
        found = check.judge(row)
        if found is not None:
            yield found


def _only(check: Check) -> str:
    """SQL: these rows, as far as the check is about them."""
    these = f"{_SOURCES[check.subject].alias}.id = ANY(%(ids)s)"
    return these if check.stored else f"{these} AND {check.live}"


def _rows(sql: str, parameters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        columns = [(column.name, column.type_code == _JSONB) for column in cursor.description]
        for values in cursor.fetchall():
            yield {
                name: json.loads(value) if is_json and value is not None else value
                for (name, is_json), value in zip(columns, values, strict=True)
            }


def _read_broker(scope: Scope, looked: Looked) -> dict[str, list[int]]:
    """Read the broker for the check that is about it. Fills `looked.broker`; returns the parameters of its query."""
    of_broker = [check for check in scope.checks if check.subject == Subject.BROKER]
    if not of_broker or scope.team_id is not None:
        for check in of_broker:
            del looked.found[check.code]
        return {}
    try:
        contents = broker.look()
    except RedisError as error:
        looked.errors |= {check.code: f"{type(error).__name__}: {error}" for check in of_broker}
        log.warning("audit.broker_unreachable", error=str(error))
        return {}
    looked.broker = {"depth": contents.depth, "held": contents.held} | count_stale(contents)
    return {
        "hint_tasks": [task_id for _team, task_id, _run in contents.hints],
        "hint_runs": [run for _team, _task, run in contents.hints],
    }


def count_stale(contents: broker.Contents, *, team_id: int | None = None) -> dict[str, int]:
    """How many of the hints that were read (of one team or of all) are for tasks or runs that are over: "read", "stale"."""
    hints = [hint for hint in contents.hints if team_id in (None, hint[0])]
    if not hints:
        return {"read": 0, "stale": 0}
    (row,) = _rows(
        """
        SELECT count(*) AS read, count(*) FILTER (WHERE task.id IS NULL) AS stale
        FROM unnest(%(tasks)s::bigint[], %(runs)s::bigint[]) AS hint(task, run)
        LEFT JOIN reminders_task AS task
               ON task.id = hint.task AND task.run = hint.run
              AND task.status IN ('WAITING', 'RUNNING')
        """,
        {"tasks": [hint[1] for hint in hints], "runs": [hint[2] for hint in hints]},
    )
    return {"read": row["read"], "stale": row["stale"]}


def _chunks(scope: Scope, looked: Looked, now: datetime) -> Iterator[tuple[Subject, list[int]]]:
    """The stored rows to look at, in parts."""
    kinds = [
        subject
        for subject in _SOURCES
        if any(check.stored and check.subject == subject for check in scope.checks)
    ]
    if not kinds:
        return
    if scope.full:
        for subject in kinds:
            for part in _all(subject, scope.team_id):
                yield subject, part
        return
    for subject, ids in _chosen(kinds, scope, looked, now).items():
        for start in range(0, len(ids), CHUNK):
            yield subject, ids[start : start + CHUNK]


def _all(subject: Subject, team_id: int | None) -> Iterator[list[int]]:
    """Every row of the kind, by id."""
    source, last = _SOURCES[subject], 0
    team = f"AND {source.team} = %(team)s" if team_id is not None else ""
    sql = f"""
        SELECT {source.alias}.id FROM {source.table} AS {source.alias} {source.join}
        WHERE {source.alias}.id > %(last)s {team} ORDER BY {source.alias}.id LIMIT {CHUNK}
    """
    while ids := [row["id"] for row in _rows(sql, {"last": last, "team": team_id})]:
        yield ids
        last = ids[-1]


def _chosen(
    kinds: Iterable[Subject], scope: Scope, looked: Looked, now: datetime
) -> dict[Subject, list[int]]:
    """Recent rows, the subjects of open findings, and the next slice; of one team, its newest rows. One statement."""
    before = (
        AuditRun.objects.filter(finished_at__isnull=False, team=None, codes=[], errors={})
        .order_by("-id")
        .values_list("started_at", "cursors")
        .first()
    )
    since, cursors = before or (now, {})
    size = settings.AUDIT_SLICE
    parameters: dict[str, Any] = {
        "since": max(since, now - LONGEST_PAUSE) - OVERLAP,
        "team": scope.team_id,
        "slice": size,
    }
    parts = []
    for kind in kinds:
        source = _SOURCES[kind]
        table = f"{source.table} AS {source.alias} {source.join}"
        team = f"AND {source.team} = %(team)s" if scope.team_id is not None else ""
        parameters[f"after_{kind}"] = cursors.get(kind, 0)
        parts += [
            f"""(SELECT '{kind}' AS kind, 'recent' AS origin, {source.alias}.id AS id FROM {table}
                 WHERE {source.recent} >= %(since)s {team}
                 ORDER BY {source.recent} DESC LIMIT {RECENT})""",
            f"""SELECT '{kind}', 'open', subject_id FROM reminders_finding
                WHERE closed_at IS NULL AND subject_kind = '{kind}'
                {"AND team_id = %(team)s" if scope.team_id is not None else ""}""",
        ]
        if scope.team_id is not None and not scope.recent_only:
            parts.append(
                f"""(SELECT '{kind}', 'slice', {source.alias}.id FROM {table}
                     WHERE {source.team} = %(team)s ORDER BY {source.alias}.id DESC LIMIT %(slice)s)"""
            )
        elif not scope.recent_only:
            parts.append(
                f"""(SELECT '{kind}', 'slice', {source.alias}.id FROM {source.table} AS {source.alias}
                     WHERE {source.alias}.id > %(after_{kind})s
                     ORDER BY {source.alias}.id LIMIT %(slice)s)"""
            )
    chosen: dict[Subject, set[int]] = {kind: set() for kind in kinds}
    slices: dict[Subject, list[int]] = {kind: [] for kind in kinds}
    for row in _rows(" UNION ALL ".join(parts), parameters):
        kind = Subject(row["kind"])
        chosen[kind].add(row["id"])
        if row["origin"] == "slice":
            slices[kind].append(row["id"])
    if scope.team_id is None and not scope.recent_only:
        # A slice that is not full has come to the end: the next one begins anew.
        looked.cursors = cursors | {
            kind.value: max(ids) if len(ids) == size else 0 for kind, ids in slices.items()
        }
    return {kind: sorted(ids) for kind, ids in chosen.items()}
