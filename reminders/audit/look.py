"""Reading: what the checks find in the rows they look at. Writes nothing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog
from django.db import DatabaseError
from redis.exceptions import RedisError

from helpdesk.clock import database_now
from reminders import broker
from reminders.audit import choice
from reminders.audit.choice import Scope
from reminders.audit.registry import Check, Found
from reminders.audit.sql import Row, results, rows
from reminders.states import Subject

log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class Looked:
    """What was found, by check; which checks could not be carried out; and where the next slices begin."""

    found: dict[str, list[Found]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    cursors: dict[str, int] = field(default_factory=dict)
    broker: dict[str, Any] = field(default_factory=dict)
    # Ids of the findings that were open and are not found any more.
    gone: list[int] = field(default_factory=list)
    rows: int = 0


@dataclass(frozen=True, slots=True)
class _Job:
    """A check, and the condition of the rows it looks at."""

    check: Check
    where: str

    @property
    def statement(self) -> str:
        return self.check.query.format(scope=self.where)


def look(scope: Scope, *, now: datetime) -> Looked:
    """Carry out the checks. One that fails is reported and holds up none of the others."""
    looked = Looked(found={check.code: [] for check in scope.checks})
    before = choice.known(scope, now=now)
    jobs = [_Job(check, choice.live(check, scope)) for check in scope.checks if check.live]
    parameters: dict[str, Any] = {"now": now, "team": scope.team_id}
    parameters |= _read_broker(scope, looked)
    for part in choice.stored(scope, before, looked.cursors):
        looked.rows += sum(map(len, part.values()))
        jobs += [
            _Job(check, choice.these(check))
            for check in scope.checks
            if check.stored and check.subject in part
        ]
        ids = {f"ids_{kind}": of for kind, of in part.items()}
        _carry_out(jobs, looked, parameters | ids)
        jobs = []
        if scope.full:  # It takes its time.
            parameters["now"] = database_now()
    _carry_out(jobs, looked, parameters)
    for code, found in looked.found.items():
        # A row may have been looked at twice: active, and recent.
        looked.found[code] = list({each.subject_id: each for each in found}.values())
    still = {(code, each.subject_id) for code, found in looked.found.items() for each in found}
    looked.gone = [
        finding
        for finding, (code, subject) in before.open.items()
        if (code, subject) not in still and code not in looked.errors
    ]
    return looked


def look_again(check: Check, ids: Collection[int], *, now: datetime) -> list[Found]:
    """What the check finds in these rows alone."""
    parameters = {"now": now, f"ids_{check.subject}": list(ids)}
    (read,) = results([_Job(check, choice.these(check)).statement], parameters)
    return [check.found(row) for row in read]


def _carry_out(jobs: Sequence[_Job], looked: Looked, parameters: Mapping[str, Any]) -> None:
    jobs = [job for job in jobs if job.check.code not in looked.errors]
    found: Sequence[list[Row] | None]
    try:
        found = results([job.statement for job in jobs], parameters)
    except DatabaseError:
        # One of them fails; asked by itself, each says whether it is the one.
        found = [None] * len(jobs)
    for job, read in zip(jobs, found, strict=True):
        try:
            of = results([job.statement], parameters)[0] if read is None else read
            looked.found[job.check.code] += map(job.check.found, of)
        except (DatabaseError, LookupError, TypeError, ValueError) as error:
            looked.errors[job.check.code] = f"{type(error).__name__}: {error}"
            log.exception("audit.check_failed", check=job.check.code)


def _read_broker(scope: Scope, looked: Looked) -> dict[str, list[int]]:
    """Read the broker for the check that is about it. Fills `looked.broker`; returns the parameters of its query."""
    of_broker = [check for check in scope.checks if check.subject == Subject.BROKER]
    if not of_broker:
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
    (row,) = rows(
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
