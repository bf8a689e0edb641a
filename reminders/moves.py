"""The only writer of a task's status, run and lease; each change leaves its row in the history, in the same statement.

Both functions are one conditional UPDATE whose row count says who won. They lock their rows in id
order, so that overlapping sets wait for each other instead of deadlocking.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from reminders.models import Task
from reminders.states import TRANSITIONS, Cause, TaskStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One step of one task, decided on the row as read: it happens only if status, run and lease still are what they were."""

    task: Task
    to: TaskStatus
    cause: Cause
    detail: str = ""
    next_run: bool = False
    available_at: datetime | None = None
    attempts: int | None = None
    summary: str = ""
    evidence: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if (TaskStatus(self.task.status), self.to, self.cause) not in TRANSITIONS:
            raise ValueError(f"{self.task.status} → {self.to} ({self.cause}) is no transition")


# A lease starts when the rows are ours, not when we asked. A takeover does not prolong it: a task that
# kills every worker that touches it is delivered again at once, and only the expiry of its lease stops
# that (it counts an attempt and makes the redelivered message one of an older run).
_CLAIM = """
WITH hint AS (
    SELECT * FROM unnest(%(ids)s::bigint[], %(runs)s::bigint[]) AS hint(id, run)
), mine AS (
    SELECT task.id, task.run, task.status AS was
    FROM reminders_task AS task JOIN hint ON hint.id = task.id AND hint.run = task.run
    WHERE task.team_id = %(team)s AND task.status IN ('WAITING', 'RUNNING')
    ORDER BY task.id
    FOR NO KEY UPDATE OF task
), claimed AS (
    UPDATE reminders_task AS task
    SET status = 'RUNNING', execution_id = %(lease)s, started_at = clock_timestamp(),
        lease_expires_at = coalesce(task.lease_expires_at, clock_timestamp() + %(ttl)s::interval)
    FROM mine WHERE task.id = mine.id
    RETURNING task.id, task.run, mine.was, task.started_at
)
INSERT INTO reminders_tasktransition
    (task_id, run, execution_id, from_status, to_status, cause, detail, at)
SELECT id, run, %(lease)s, was, 'RUNNING',
       CASE was WHEN 'RUNNING' THEN 'TAKEN_OVER' ELSE 'CLAIMED' END, '', started_at
FROM claimed ORDER BY id
"""


def claim(
    *, team_id: int, hints: Sequence[tuple[int, int]], lease: uuid.UUID, ttl: timedelta
) -> int:
    """Take a lease on the team's tasks of these (id, run) that are WAITING or RUNNING. Returns how many.

    A missing task, another run, COMPLETED or FAILED: not claimed, nothing written. A RUNNING task may
    be taken over; whoever held it finds out when it wants to finish.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _CLAIM,
            {
                "ids": [task_id for task_id, _run in hints],
                "runs": [run for _id, run in hints],
                "team": team_id,
                "lease": lease,
                "ttl": f"{ttl.total_seconds()} seconds",
            },
        )
        return int(cursor.rowcount)


_MOVE = """
WITH step AS (
    SELECT * FROM unnest(
        %(id)s::bigint[], %(run)s::bigint[], %(was)s::text[], %(lease)s::uuid[], %(status)s::text[],
        %(cause)s::text[], %(detail)s::text[], %(next_run)s::int[], %(available_at)s::timestamptz[],
        %(attempts)s::int[], %(summary)s::text[], %(evidence)s::text[]
    ) AS step(id, run, was, lease, status, cause, detail, next_run, available_at, attempts, summary,
              evidence)
), mine AS (
    SELECT task.id
    FROM reminders_task AS task JOIN step ON step.id = task.id
    WHERE task.run = step.run AND task.status = step.was
      AND task.execution_id IS NOT DISTINCT FROM step.lease
    ORDER BY task.id
    FOR NO KEY UPDATE OF task
), moved AS (
    UPDATE reminders_task AS task
    SET status = step.status, run = task.run + step.next_run,
        execution_id = NULL, lease_expires_at = NULL,
        available_at = coalesce(step.available_at, task.available_at),
        dispatched_at = CASE step.status WHEN 'WAITING' THEN NULL ELSE task.dispatched_at END,
        attempts = coalesce(step.attempts, task.attempts),
        last_error = CASE WHEN step.status = 'COMPLETED' THEN ''
                          WHEN step.attempts > 0 THEN step.detail ELSE task.last_error END,
        progress = CASE step.status WHEN 'COMPLETED' THEN 100 ELSE 0 END,
        result_summary = step.summary, evidence = step.evidence::jsonb,
        finished_at = CASE WHEN step.status IN ('COMPLETED', 'FAILED') THEN %(now)s END
    FROM mine JOIN step ON step.id = mine.id WHERE task.id = mine.id
    RETURNING task.id, task.run, step.lease, step.was, step.status, step.cause, step.detail
)
INSERT INTO reminders_tasktransition
    (task_id, run, execution_id, from_status, to_status, cause, detail, actor_id, at)
SELECT id, run, lease, was, status, cause, detail, %(actor)s::bigint, %(now)s FROM moved ORDER BY id
"""


def move(moves: Sequence[Move], *, now: datetime, actor_id: int | None = None) -> int:
    """Carry the steps out. Returns how many tasks still were as read: fewer than asked means somebody else was there.

    Every step ends the lease. `actor_id` is the person behind it, None for the system.
    """
    if not moves:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(
            _MOVE,
            {
                "id": [step.task.pk for step in moves],
                "run": [step.task.run for step in moves],
                "was": [step.task.status for step in moves],
                "lease": [step.task.execution_id for step in moves],
                "status": [step.to.value for step in moves],
                "cause": [step.cause.value for step in moves],
                "detail": [step.detail for step in moves],
                "next_run": [int(step.next_run) for step in moves],
                "available_at": [step.available_at for step in moves],
                "attempts": [step.attempts for step in moves],
                "summary": [step.summary for step in moves],
                "evidence": [
                    None if step.evidence is None else json.dumps(step.evidence) for step in moves
                ],
                "now": now,
                "actor": actor_id,
            },
        )
        return int(cursor.rowcount)
