"""Celery entry points: a name, a queue (see `helpdesk.celery`), one call."""

from contextlib import suppress
from typing import Any

import structlog
from celery import Task, shared_task
from django.db import InterfaceError, OperationalError

from reminders import outbox, processor, recovery
from reminders.audit import prune as pruning
from reminders.audit import runner
from reminders.states import Trigger

log = structlog.get_logger(__name__)

# How long the next set of a busy team waits, in seconds; about as long as a set takes.
BUSY_WAIT = 0.25


@shared_task(
    bind=True,
    name="reminders.process",
    max_retries=None,
    # The database is away: come again. The claim is repeatable, so no lease has to expire first.
    autoretry_for=(OperationalError, InterfaceError),
    retry_backoff=1,
    retry_backoff_max=30,
)
def process(self: "Task[Any, Any]", team_id: int, hints: list[list[int]]) -> None:
    """Fire the reminders of one team that the hints name."""
    try:
        processor.process(team_id=team_id, hints=[(task_id, run) for task_id, run in hints])
    except processor.TeamBusy:
        raise self.retry(countdown=BUSY_WAIT) from None
    except processor.NotDueYet as early:
        # The row waits and has been published again; this message has done its part.
        log.info("reminder.not_due_yet", team=team_id, at=early.at.isoformat())


@shared_task(name="reminders.dispatch")
def dispatch() -> None:
    """Publish what has come within the horizon, and again what seems to be lost."""
    outbox.dispatch_due()


@shared_task(name="reminders.recover")
def recover() -> None:
    """Put tasks with an expired lease back in the queue."""
    recovery.recover_expired()


@shared_task(name="reminders.audit")
def audit() -> None:
    """Look for inconsistencies everywhere, and mend what is certain."""
    with suppress(runner.AuditBusy):
        runner.audit(trigger=Trigger.BEAT)


@shared_task(name="reminders.audit_team")
def audit_team(team_id: int) -> None:
    """The same for one team, some of whose tasks have just been completed."""
    with suppress(runner.AuditBusy):
        runner.audit(trigger=Trigger.BOUNDARY, team_id=team_id)


@shared_task(name="reminders.prune")
def prune() -> None:
    """Delete history, runs and closed findings that are older than they are kept."""
    pruning.prune()
