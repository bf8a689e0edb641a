"""Tasks whose worker disappeared: back in the queue with the next run, so that its late messages mean nothing."""

from collections.abc import Sequence
from datetime import datetime

import structlog
from django.conf import settings
from django.db import transaction

from helpdesk.clock import database_now
from reminders import outbox
from reminders.models import Task
from reminders.moves import Move, move
from reminders.states import Cause, TaskStatus

log = structlog.get_logger(__name__)

BATCH = 1_000


def recover_expired() -> int:
    """Put RUNNING tasks whose lease has expired back to WAITING with run + 1. Returns how many.

    It counts as an attempt: a task that kills whoever touches it must not go round for ever. After
    the last one it is FAILED and waits for a person. Rows that somebody is just moving are skipped.
    """
    total = 0
    while True:
        with transaction.atomic(durable=True):
            now = database_now()
            tasks = list(
                Task.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
                .filter(status=TaskStatus.RUNNING, lease_expires_at__lt=now)
                .order_by("id")[:BATCH]
            )
            requeue(tasks, now=now)
        total += len(tasks)
        if len(tasks) < BATCH:
            return total


def requeue(tasks: Sequence[Task], *, now: datetime) -> None:
    """Take the lease from these tasks, which the caller has locked, and put them back or give up."""
    steps = [_recovered(task) for task in tasks]
    move(steps, now=now)
    outbox.publish_on_commit([_next_run(step) for step in steps if step.next_run], now=now)
    transaction.on_commit(lambda: _log_recovered(steps), robust=True)


def _log_recovered(steps: Sequence[Move]) -> None:
    for step in steps:
        log.warning(
            "reminder.lease_expired",
            task=step.task.pk,
            ticket=step.task.ticket_id,
            attempt=step.attempts,
            now=step.to.value,
        )


def _recovered(task: Task) -> Move:
    attempts = task.attempts + 1
    give_up = attempts >= settings.REMINDER_MAX_ATTEMPTS
    return Move(
        task=task,
        to=TaskStatus.FAILED if give_up else TaskStatus.WAITING,
        cause=Cause.LEASE_EXPIRED,
        detail="The lease expired: the worker disappeared or was stopped.",
        attempts=attempts,
        next_run=not give_up,
    )


def _next_run(step: Move) -> outbox.Hint:
    """What to publish for a task that the step has put back."""
    step.task.run += 1
    step.task.attempts += 1
    return outbox.hint(step.task)
