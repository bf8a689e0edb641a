"""Reading the queue's health: figures, audit runs, findings, as frozen dataclasses. Labels are in the reader's language.

`team_id` None: all teams, and what belongs to none. How many queries each function costs is fixed,
however many rows there are.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import Q, TextChoices
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from redis.exceptions import RedisError

from reminders import broker
from reminders.audit import checks
from reminders.audit.look import count_stale
from reminders.audit.registry import CHECKS
from reminders.audit.sql import rows
from reminders.audit.wording import PROBLEMS, brief, doubts_in_words, titles
from reminders.models import AuditRun, Finding
from reminders.states import Action, Handling, Severity, Subject, Trigger, Verdict
from tickets.models import Membership, User
from tickets.states import STAFF

__all__ = ["checks"]  # Importing them fills the registry.

RUNS: Final = 40
OPEN: Final = 50
CLOSED: Final = 20


# --- Figures ----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The queue at one moment of the database's clock."""

    now: datetime
    waiting: int
    running: int
    failed: int
    # In the last 24 hours, like everything about lateness.
    completed: int
    # Due, but neither completed nor failed: the backlog, and the task in it that has waited longest.
    due: int
    oldest_due: datetime | None
    oldest_task: int | None
    # Reminders that were sent, and by how many milliseconds after their due time. None: there were none.
    sent: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    # Open findings; and those that wait for somebody to decide.
    found: int
    undecided: int
    last_looked: datetime | None

    @property
    def backlog(self) -> timedelta | None:
        return self.now - self.oldest_due if self.oldest_due else None

    @property
    def lateness(self) -> list[tuple[str, str]]:
        """The percentiles in words; empty if nothing was sent."""
        shares = ((50, self.p50_ms), (95, self.p95_ms), (99, self.p99_ms))
        return [
            (gettext("%(share)d %% within") % {"share": share}, brief(value))
            for share, value in shares
            if value is not None
        ]

    @property
    def is_unwatched(self) -> bool:
        """The audit has missed several of its turns: what this page says may be old."""
        return self.last_looked is None or self.now - self.last_looked > 3 * settings.AUDIT_PERIOD


# Waiting and running are told apart before they are put together: each has an index of its own.
# `late_ms` comes from evidence, which a bug may have written: only a number counts, of any size.
# A run after completed tasks, or of some checks, is no look at the whole.
_FIGURES: Final = """
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), unfinished AS MATERIALIZED (
    SELECT task.id, task.status, task.due_at FROM reminders_task AS task
    WHERE task.status = 'WAITING' AND {task}
    UNION ALL
    SELECT task.id, task.status, task.due_at FROM reminders_task AS task
    WHERE task.status = 'RUNNING' AND {task}
), finished AS MATERIALIZED (
    SELECT CASE WHEN task.evidence ->> 'outcome' = 'fired'
                 AND jsonb_typeof(task.evidence -> 'late_ms') = 'number'
                THEN least(greatest((task.evidence ->> 'late_ms')::numeric, 0), 1e12)::float8
           END AS late_ms
    FROM reminders_task AS task
    WHERE task.finished_at >= (SELECT now FROM clock) - interval '1 day'
      AND task.status = 'COMPLETED' AND {task}
), oldest AS (
    SELECT id, due_at FROM unfinished WHERE due_at <= (SELECT now FROM clock)
    ORDER BY due_at, id LIMIT 1
), finding AS MATERIALIZED (
    SELECT verdict, handling FROM reminders_finding AS finding
    WHERE finding.closed_at IS NULL AND {finding}
)
SELECT clock.now,
       (SELECT count(*) FROM unfinished WHERE status = 'WAITING') AS waiting,
       (SELECT count(*) FROM unfinished WHERE status = 'RUNNING') AS running,
       (SELECT count(*) FROM reminders_task AS task
        WHERE task.status = 'FAILED' AND {task}) AS failed,
       (SELECT count(*) FROM finished) AS completed,
       (SELECT count(*) FROM unfinished WHERE due_at <= clock.now) AS due,
       (SELECT due_at FROM oldest) AS oldest_due,
       (SELECT id FROM oldest) AS oldest_task,
       (SELECT count(late_ms) FROM finished) AS sent,
       (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY late_ms) FROM finished) AS p50_ms,
       (SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY late_ms) FROM finished) AS p95_ms,
       (SELECT percentile_cont(0.99) WITHIN GROUP (ORDER BY late_ms) FROM finished) AS p99_ms,
       (SELECT count(*) FROM finding) AS found,
       (SELECT count(*) FROM finding
        WHERE verdict = 'AMBIGUOUS' AND handling <> 'RESOLVED') AS undecided,
       (SELECT run.finished_at FROM reminders_auditrun AS run
        WHERE run.finished_at IS NOT NULL AND run.codes = '[]' AND run.trigger <> 'BOUNDARY'
          AND {run}
        ORDER BY run.id DESC LIMIT 1) AS last_looked
FROM clock
"""


def figures(*, team_id: int | None) -> Figures:
    """Depth, backlog, lateness, and what waits for people. One query."""
    of_team = "{}.team_id = %(team)s" if team_id is not None else "true"
    # A run over all teams looked at this one, too.
    of_run = "(run.team_id IS NULL OR run.team_id = %(team)s)" if team_id else "run.team_id IS NULL"
    (row,) = rows(
        _FIGURES.format(task=of_team.format("task"), finding=of_team.format("finding"), run=of_run),
        {"team": team_id},
    )
    if row["oldest_due"]:
        row["oldest_due"] = _showable(row["oldest_due"])
    return Figures(**row)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerState:
    """What the broker held, in all its queues; and of the hints that were read (a team's own), how many mean nothing."""

    answers: bool
    depth: Mapping[str, int]
    held: int = 0
    read: int = 0
    stale: int = 0


def broker_state(*, team_id: int | None) -> BrokerState:
    """At most one query. A broker that does not answer, or holds what nobody can read, is a state as well."""
    try:
        contents = broker.look()
    except (RedisError, LookupError, TypeError, ValueError):
        return BrokerState(answers=False, depth={})
    return BrokerState(
        answers=True,
        depth=contents.depth,
        held=contents.held,
        **count_stale(contents, team_id=team_id),
    )


# --- Runs -------------------------------------------------------------------------------------------
class RunState(TextChoices):
    """What became of an audit run, the worst first."""

    INTERRUPTED = "INTERRUPTED", _("Interrupted")
    FAILED = "FAILED", _("Something failed")
    UNDER_WAY = "UNDER_WAY", _("Under way")
    FOUND = "FOUND", _("Found something")
    CLEAN = "CLEAN", _("Found nothing")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """An audit run as pages show it. `team_name` is empty for all teams, `actor_name` if nobody asked for it."""

    id: int
    trigger: str
    team_name: str
    actor_name: str
    # Titles of the checks it was limited to; empty: all.
    only: Sequence[str]
    # Titles of the checks that could not be carried out, with the error of each.
    errors: Mapping[str, str]
    started_at: datetime
    duration_ms: int | None
    found: int
    repaired: int
    failed: int
    state: RunState

    @property
    def duration(self) -> str:
        return "" if self.duration_ms is None else brief(self.duration_ms)


# One audit runs at a time, and a full one of millions of rows has been seen to take minutes.
_LONGEST_RUN: Final = timedelta(minutes=30)


def audit_runs(*, team_id: int | None, now: datetime, limit: int = RUNS) -> list[RunRow]:
    """The latest runs, newest first; for a team, those over all teams and its own. One query."""
    wanted = Q() if team_id is None else Q(team=None) | Q(team=team_id)
    runs = AuditRun.objects.filter(wanted).select_related("team", "actor").order_by("-id")
    return [_run(row, place, now) for place, row in enumerate(runs[:limit])]


def _run(row: AuditRun, place: int, now: datetime) -> RunRow:
    if row.finished_at is None:
        is_last = place == 0 and now - row.started_at < _LONGEST_RUN
        state = RunState.UNDER_WAY if is_last else RunState.INTERRUPTED
    elif row.failed or row.errors:
        state = RunState.FAILED
    else:
        state = RunState.FOUND if row.found else RunState.CLEAN
    return RunRow(
        id=row.pk,
        trigger=str(Trigger(row.trigger).label),
        team_name=row.team.name if row.team else "",
        actor_name=row.actor.display_name if row.actor else "",
        only=titles(row.codes),
        errors=dict(zip(titles(row.errors), row.errors.values(), strict=True)),
        started_at=row.started_at,
        duration_ms=row.duration_ms,
        found=row.found,
        repaired=row.repaired,
        failed=row.failed,
        state=state,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A run in the chart: whole units of a picture `Chart.WIDTH` wide and `Chart.HEIGHT` high."""

    run: RunRow
    x: int
    y: int
    height: int

    @property
    def middle(self) -> int:
        return self.x + Chart.BAR // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Durations of runs as bars, the newest at the right."""

    # Room above the tallest bar for the sign of what was found.
    BAR = 16
    STEP = 20
    HEIGHT = 120
    TALLEST = 96

    bars: Sequence[Bar]
    longest: str

    @property
    def width(self) -> int:
        return self.STEP * RUNS

    @property
    def states(self) -> list[RunState]:
        """Those that occur, for the legend."""
        seen = {bar.run.state for bar in self.bars}
        return [state for state in reversed(RunState) if state in seen]


def chart(runs: Sequence[RunRow]) -> Chart:
    """The picture of these runs (newest first). Every bar can be seen, however short the run was."""
    longest = max((run.duration_ms or 0 for run in runs), default=0)
    bars = []
    for place, run in enumerate(reversed(runs), start=RUNS - len(runs)):
        share = (run.duration_ms or 0) / longest if longest else 0
        # A run without an end has no duration; a third of the height is for its sign alone.
        height = Chart.TALLEST // 3 if run.duration_ms is None else round(Chart.TALLEST * share)
        height = max(height, 4)
        bars.append(Bar(run=run, x=place * Chart.STEP + 2, y=Chart.HEIGHT - height, height=height))
    return Chart(bars=bars, longest=brief(longest))


# --- Findings ---------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value of the evidence. `moment` is set if it is a time that can be shown in the reader's zone."""

    text: str
    moment: datetime | None = None
    is_nothing: bool = False
    is_block: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceLine:
    """Where a value was read, and what was there: several, if the check saw a list."""

    source: str
    values: Sequence[Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """A finding as pages show it."""

    id: int
    code: str
    # The code, if the check is no longer registered; the meaning is empty then.
    title: str
    meaning: str
    severity: Severity
    verdict: Verdict
    subject_kind: Subject
    subject_id: int
    team_name: str
    team_slug: str
    # Of the ticket behind the subject; None if there is none, or it is not one of the finding's team.
    ticket_number: int | None
    ticket_title: str
    evidence: Sequence[EvidenceLine]
    # The same as it was written down.
    read: Any
    doubts: Sequence[str]
    since: datetime
    last_seen: datetime
    closed_at: datetime | None
    dwell: timedelta
    seen: int
    run_id: int
    action: str
    action_label: str
    action_detail: str
    acted_at: datetime | None
    acted_run_id: int | None
    handling: Handling
    handled_by: str
    handled_at: datetime | None
    note: str
    can_repair: bool

    @property
    def is_ambiguous(self) -> bool:
        return self.verdict == Verdict.AMBIGUOUS

    @property
    def is_resolved(self) -> bool:
        return self.handling == Handling.RESOLVED

    @property
    def is_acknowledged(self) -> bool:
        return self.handling == Handling.ACKNOWLEDGED


def open_findings(
    *, team_id: int | None, before: int | None = None, limit: int = OPEN
) -> list[FindingRow]:
    """What is there now, newest first, one page of `limit`; `before` is the last id of the page before. Two queries."""
    wanted = Q(closed_at=None)
    if before is not None:
        wanted &= Q(pk__lt=before)
    return _findings(team_id, wanted, "-id", limit)


def closed_findings(*, team_id: int | None, limit: int = CLOSED) -> list[FindingRow]:
    """What has gone or was mended, the latest first. Two queries."""
    return _findings(team_id, Q(closed_at__isnull=False), "-closed_at", limit)


def findings(
    *, team_id: int, is_open: bool | None = None, before: int | None = None, limit: int = OPEN
) -> list[FindingRow]:
    """The team's findings, newest first, one page of `limit`; `is_open` None: all of them. Two queries."""
    wanted = Q()
    if is_open is not None:
        wanted &= Q(closed_at__isnull=is_open)
    if before is not None:
        wanted &= Q(pk__lt=before)
    return _findings(team_id, wanted, "-id", limit)


def finding(*, team_id: int, finding_id: int) -> FindingRow | None:
    """One finding of the team, None if there is none. Two queries."""
    return next(iter(_findings(team_id, Q(pk=finding_id), "-id", 1)), None)


def open_ambiguous(user: User) -> int:
    """How many findings wait for somebody to decide, in the teams whose staff the person is on. One indexed count.

    For superusers in all teams, with those of no team.
    """
    waiting = Finding.objects.filter(closed_at=None, verdict=Verdict.AMBIGUOUS).exclude(
        handling=Handling.RESOLVED
    )
    if not user.is_superuser:
        mine = Membership.objects.filter(user=user, role__in=STAFF)
        waiting = waiting.filter(team__in=mine.values("team"))
    return waiting.count()


def is_of_team(*, finding_id: int, team_id: int) -> bool:
    """One query."""
    return Finding.objects.filter(pk=finding_id, team=team_id).exists()


def _findings(team_id: int | None, wanted: Q, order: str, limit: int) -> list[FindingRow]:
    if team_id is not None:
        wanted &= Q(team=team_id)
    found = Finding.objects.filter(wanted).select_related("team", "handled_by")
    page = list(found.order_by(order, "-id")[:limit])
    tickets = {row["finding"]: row for row in rows(_TICKETS, {"ids": [row.pk for row in page]})}
    return [_finding(row, tickets.get(row.pk, {})) for row in page]


# Only a ticket of the finding's own team: whoever administers one team must not read titles of another.
_TICKETS: Final = """
SELECT finding.id AS finding, ticket.number, ticket.title
FROM reminders_finding AS finding
LEFT JOIN reminders_task AS task
       ON finding.subject_kind = 'TASK' AND task.id = finding.subject_id
LEFT JOIN notifications_remindernotification AS notice
       ON finding.subject_kind = 'NOTICE' AND notice.id = finding.subject_id
JOIN tickets_ticket AS ticket ON ticket.team_id = finding.team_id AND ticket.id =
     CASE finding.subject_kind WHEN 'TASK' THEN task.ticket_id WHEN 'NOTICE' THEN notice.ticket_id
          WHEN 'TICKET' THEN finding.subject_id END
WHERE finding.id = ANY(%(ids)s)
"""


def _finding(row: Finding, ticket: Mapping[str, Any]) -> FindingRow:
    check = CHECKS.get(row.code)
    return FindingRow(
        id=row.pk,
        code=row.code,
        title=titles([row.code])[0],
        meaning=str(check.meaning) if check else "",
        severity=Severity(row.severity),
        verdict=Verdict(row.verdict),
        subject_kind=Subject(row.subject_kind),
        subject_id=row.subject_id,
        team_name=row.team.name if row.team else "",
        team_slug=row.team.slug if row.team else "",
        ticket_number=ticket.get("number"),
        ticket_title=ticket.get("title", ""),
        evidence=_evidence(row.evidence),
        read=row.evidence,
        doubts=doubts_in_words(row.doubts),
        since=_showable(row.since),
        last_seen=row.last_seen,
        closed_at=row.closed_at,
        dwell=row.dwell,
        seen=row.seen,
        run_id=row.run_id,
        action=row.action,
        action_label=str(Action(row.action).label) if row.action else "",
        # For what was refused, the doubts at that moment.
        action_detail=" ".join(doubts_in_words(row.action_detail.split(", ")))
        if row.action == Action.REFUSED
        else row.action_detail,
        acted_at=row.acted_at,
        acted_run_id=row.acted_run_id,
        handling=Handling(row.handling),
        handled_by=row.handled_by.display_name if row.handled_by else "",
        handled_at=row.handled_at,
        note=row.note,
        can_repair=check is not None and check.action is not None and row.team is not None,
    )


def _evidence(evidence: object) -> list[EvidenceLine]:
    """What is wrong comes first, the rest by column: what two tables say about the same stands together."""
    lines = evidence if isinstance(evidence, dict) else {"": evidence}
    return [
        EvidenceLine(
            source=source,
            values=[
                _value(source, each) for each in (found if isinstance(found, list) else [found])
            ],
        )
        for source, found in sorted(lines.items(), key=_by_column)
    ]


def _by_column(line: tuple[str, object]) -> tuple[bool, str, str]:
    source, _found = line
    return source != _PROBLEM, source.partition(".")[2], source


# Where `unproven` says what is wrong, in words that can be translated.
_PROBLEM: Final = "proof.problem"
# As `record` writes down a time of the database.
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?[+-]\d\d:\d\d")


def _value(source: str, found: object) -> Value:
    if found is None:
        return Value(text="null", is_nothing=True)
    if isinstance(found, dict | list):
        return Value(text=json.dumps(found, ensure_ascii=False, indent=2), is_block=True)
    if not isinstance(found, str):
        return Value(text=json.dumps(found))
    if source == _PROBLEM and found in PROBLEMS:
        return Value(text=str(PROBLEMS[found]))
    return Value(text=found, moment=_moment(found))


def _moment(text: str) -> datetime | None:
    """The text as a time; None if it is none, or one that has no place in the reader's calendar."""
    if not _TIME.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        timezone.localtime(moment)
    except (OverflowError, ValueError):
        return None
    return moment


_FIRST: Final = datetime(2, 1, 1, tzinfo=UTC)


def _showable(moment: datetime) -> datetime:
    """A bug may write the first day of the calendar; in a zone west of here that day does not exist."""
    return max(moment, _FIRST)
