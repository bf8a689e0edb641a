"""What a person may do to a task."""

from django.db import IntegrityError
from django.utils.translation import gettext_lazy as _

from helpdesk.clock import database_now
from helpdesk.constraints import violates
from helpdesk.errors import InvalidTransition, NotFound
from reminders import outbox
from reminders.models import Task
from reminders.moves import Move, move
from reminders.states import Cause, TaskStatus
from tickets.locks import actor_under_lock, locked_team


def retry_task(*, team_id: int, task_id: int, actor_id: int) -> int:
    """Put a FAILED task back in the queue, with the next run and a fresh set of attempts. Returns the run.

    Staff of the team only. `InvalidTransition` if it has not failed, or if another task for the same
    reminder is already active.
    """
    try:
        with locked_team(team_id) as team:
            actor = actor_under_lock(team, actor_id)
            task = Task.objects.filter(pk=task_id, team=team).first()
            if task is None:
                raise NotFound
            actor.require_staff()
            if task.status != TaskStatus.FAILED:
                raise InvalidTransition(_("Only a failed task can be retried."))
            now = database_now()
            step = Move(
                task=task,
                to=TaskStatus.WAITING,
                cause=Cause.RETRIED,
                next_run=True,
                available_at=now,
                attempts=0,
            )
            if not move([step], now=now, actor_id=actor.user_id):
                raise InvalidTransition(_("Somebody else has just retried this task."))
            task.run += 1
            task.attempts, task.available_at = 0, now
            outbox.publish_on_commit([outbox.hint(task)], now=now)
    except IntegrityError as error:
        if violates(error, "one_active_task_per_intent"):
            raise InvalidTransition(
                _("Another task for this reminder is already active.")
            ) from error
        raise
    return task.run
