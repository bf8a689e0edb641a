"""Planning and ending reminder tasks: what the ticket services call, under the team lock, when the intent changes."""

from datetime import datetime

from notifications import services as notices
from reminders import evidence, outbox
from reminders.models import Task, TaskTransition
from reminders.moves import Move, move
from reminders.states import ACTIVE, Cause, SkipReason, TaskKind, TaskStatus
from tickets.locks import Actor, require_team_lock
from tickets.models import Ticket
from tickets.states import Status

# After these the notices in people's bells have nothing left to ask for.
_HANDLED = {SkipReason.RESOLVED, SkipReason.CLOSED}


def plan_reminder(*, ticket: Ticket, owner_id: int, now: datetime) -> Task:
    """Create the task for the ticket's present reminder revision, due at `ticket.due_at`.

    The caller has ended the tasks of older revisions; a second active task for one revision is
    refused by the database. Published after the commit if it is due within the horizon.
    """
    require_team_lock(ticket.team_id)
    assert ticket.due_at is not None
    task = Task.objects.create(
        team_id=ticket.team_id,
        kind=TaskKind.REMINDER,
        ticket=ticket,
        reminder_revision=ticket.reminder_revision,
        owner_id=owner_id,
        due_at=ticket.due_at,
        available_at=ticket.due_at,
        created_at=now,
    )
    TaskTransition.objects.create(
        task=task, run=task.run, to_status=TaskStatus.WAITING, cause=Cause.PLANNED, at=now
    )
    outbox.publish_on_commit([outbox.hint(task)], now=now)
    return task


def end_reminder(*, ticket: Ticket, reason: SkipReason, now: datetime, actor: Actor) -> None:
    """Complete every unfinished reminder task of the ticket as skipped, and say why.

    Messages for them may still be at the broker; the first gate drops those. Resolving and closing
    also mark the ticket's unread notices as handled.
    """
    require_team_lock(ticket.team_id)
    # Locked, so that a worker cannot claim one between this read and the move.
    tasks = list(
        Task.objects.select_for_update(no_key=True, of=("self",))
        .filter(ticket=ticket, kind=TaskKind.REMINDER, status__in=ACTIVE)
        .order_by("id")
    )
    move(
        [
            skipped(task, reason, ticket_version=ticket.version, revision=ticket.reminder_revision)
            for task in tasks
        ],
        now=now,
        actor_id=actor.user_id,
    )
    if reason in _HANDLED:
        notices.mark_handled(ticket_id=ticket.pk, now=now)


def why_obsolete(task: Task, ticket: Ticket) -> SkipReason | None:
    """Why the task no longer stands for what is wanted of the ticket, None if it does."""
    if ticket.team_id != task.team_id:
        return SkipReason.TICKET_MISSING
    if ticket.status == Status.RESOLVED:
        return SkipReason.RESOLVED
    if ticket.status == Status.CLOSED:
        return SkipReason.CLOSED
    if ticket.due_at is None:
        return SkipReason.CANCELLED
    if ticket.reminder_revision != task.reminder_revision:
        return SkipReason.REPLACED
    return None


def skipped(
    task: Task,
    reason: SkipReason,
    *,
    ticket_version: int | None,
    revision: int | None,
    cause: Cause = Cause.SKIPPED,
) -> Move:
    """The move that completes a task without reminding anybody."""
    proof = evidence.of_skip(
        task=task, reason=reason, ticket_version=ticket_version, ticket_revision=revision
    )
    return Move(
        task=task,
        to=TaskStatus.COMPLETED,
        cause=cause,
        detail=reason.value,
        summary=evidence.stored_summary(proof),
        evidence=proof,
    )
