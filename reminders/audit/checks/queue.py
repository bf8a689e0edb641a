"""Unfinished tasks that should not be there, are stuck, or are missing."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from django.utils.translation import gettext_lazy as _

from notifications.selectors import notices_for
from reminders import evidence, outbox, recovery, schedule
from reminders.audit.registry import Check, Found, check, doubts, in_future
from reminders.models import Task
from reminders.moves import Move, move
from reminders.states import Action, Cause, Severity, SkipReason, Subject, TaskStatus
from tickets.models import Ticket, TicketEvent

# As the index one_active_task_per_intent has it, so that it serves.
UNFINISHED: Final = "task.kind = 'REMINDER' AND task.status IN ('WAITING', 'RUNNING')"
# The event that a reminder was sent for the same ticket and revision.
SENT: Final = """
    SELECT FROM tickets_ticketevent AS event
    WHERE event.kind = 'TIMEOUT_REMINDED' AND event.ticket_id = {0}.{1}
      AND event.reminder_revision = {0}.reminder_revision
"""
_TASK: Final = """
    task.status AS "task.status", task.run AS "task.run",
    task.reminder_revision AS "task.reminder_revision", task.due_at AS "task.due_at",
    task.created_at AS "task.created_at"
"""
_TICKET: Final = """
    ticket.id AS "ticket.id", ticket.number AS "ticket.number", ticket.status AS "ticket.status",
    ticket.version AS "ticket.version", ticket.reminder_revision AS "ticket.reminder_revision",
    ticket.due_at AS "ticket.due_at", ticket.updated_at AS "ticket.updated_at"
"""


@check
class FinishedButActive(Check):
    """Done, but still in the queue: the reminder's event and notices exist, the task does not know."""

    code = "finished_but_active"
    title = _("Sent, but still in the queue")
    meaning = _(
        "The history and the notices prove that the reminder was sent. The task is completed from that proof. If the proof is dated before the task, or is not whole, somebody has to decide."
    )
    subject = Subject.TASK
    severity = Severity.WARNING
    live = UNFINISHED
    action = Action.COMPLETED
    query = f"""
        SELECT task.id AS subject, task.team_id AS team, event.created_at AS since,
               {
        doubts(
            proof_before_task="event.created_at < task.created_at",
            proof_before_due="event.created_at < task.due_at",
            proof_in_future=in_future("event.created_at"),
            task_in_future=in_future("task.created_at"),
            proof_not_whole="notice.users <> event.planned",
        )
    } AS doubts,
               {_TASK}, event.id AS "event.id", event.version AS "event.version",
               event.created_at AS "event.created_at", event.planned AS "event.recipients",
               notice.users AS "notice.user_id"
        FROM reminders_task AS task
        JOIN LATERAL (
            SELECT event.*, ARRAY(
                SELECT who::bigint FROM jsonb_path_query(event.data, '$.recipients[*].user') AS who
                WHERE jsonb_typeof(who) = 'number' ORDER BY 1) AS planned
            FROM tickets_ticketevent AS event
            WHERE event.kind = 'TIMEOUT_REMINDED' AND event.ticket_id = task.ticket_id
              AND event.reminder_revision = task.reminder_revision
        ) AS event ON true
        CROSS JOIN LATERAL (
            SELECT ARRAY(
                SELECT notice.user_id FROM notifications_remindernotification AS notice
                WHERE notice.ticket_id = task.ticket_id
                  AND notice.reminder_revision = task.reminder_revision
                ORDER BY 1) AS users
        ) AS notice
        WHERE {{scope}}
    """

    def repair(self, found: Sequence[Found], *, team_id: int, now: datetime) -> None:
        tasks = _tasks(found)
        events = {
            (event.ticket_id, event.reminder_revision): event
            for event in TicketEvent.objects.filter(
                pk__in=[each.evidence["event.id"] for each in found]
            )
        }
        steps = []
        for task in tasks:
            event = events[task.ticket_id, task.reminder_revision]
            notices = notices_for({task.ticket_id: task.reminder_revision})
            proof = evidence.of_firing(
                event=event,
                notices=notices,
                planned=[recipient["user"] for recipient in event.data["recipients"]],
                created=len(notices),
                due_at=datetime.fromisoformat(event.data["due_at"]),
                late_ms=event.data["late_ms"],
            )
            steps.append(
                Move(
                    task=task,
                    to=TaskStatus.COMPLETED,
                    cause=Cause.PROVEN,
                    summary=evidence.stored_summary(proof),
                    evidence=proof,
                )
            )
        move(steps, now=now)


@check
class Obsolete(Check):
    """A task for what nobody wants any more: an older intent, a finished ticket, no due time."""

    code = "obsolete"
    title = _("In the queue for an intent that no longer holds")
    meaning = _(
        "The ticket is resolved or closed, has no due time, or a newer reminder. The task is ended as skipped; nobody is notified. A task that claims to be newer than its ticket, or changed after it, needs somebody to decide."
    )
    subject = Subject.TASK
    severity = Severity.WARNING
    live = UNFINISHED
    action = Action.ENDED
    query = f"""
        SELECT task.id AS subject, task.team_id AS team, ticket.updated_at AS since,
               {
        doubts(
            task_newer_than_ticket="task.reminder_revision > ticket.reminder_revision",
            task_after_change="task.created_at > ticket.updated_at",
            task_in_future=in_future("task.created_at"),
            ticket_in_future=in_future("ticket.updated_at"),
            other_team="task.team_id <> ticket.team_id",
        )
    } AS doubts,
               {_TASK}, {_TICKET}, ticket.team_id AS "ticket.team_id"
        FROM reminders_task AS task JOIN tickets_ticket AS ticket ON ticket.id = task.ticket_id
        WHERE {{scope}}
          AND (ticket.status IN ('RESOLVED', 'CLOSED') OR ticket.due_at IS NULL
               OR ticket.reminder_revision <> task.reminder_revision
               OR ticket.team_id <> task.team_id)
          AND NOT EXISTS ({SENT.format("task", "ticket_id")})
    """

    def repair(self, found: Sequence[Found], *, team_id: int, now: datetime) -> None:
        tasks = _tasks(found)
        tickets = Ticket.objects.in_bulk([task.ticket_id for task in tasks])
        steps = []
        for task in tasks:
            ticket = tickets[task.ticket_id]
            reason = schedule.why_obsolete(task, ticket)
            assert reason is not None
            steps.append(_ended(task, ticket, reason))
        move(steps, now=now)


@check
class Duplicate(Check):
    """Several unfinished tasks for one plan. The database refuses that; a lost index does not."""

    code = "duplicate"
    title = _("Several tasks for the same reminder")
    meaning = _(
        "The newest task that agrees with the ticket stays, the others are ended as skipped. Check that the constraint one_active_task_per_intent exists."
    )
    subject = Subject.TASK
    severity = Severity.ERROR
    live = UNFINISHED
    action = Action.ENDED
    query = f"""
        SELECT task.id AS subject, task.team_id AS team, kept.created_at AS since,
               {
        doubts(
            order_of_copies="kept.id > task.id AND kept.created_at < task.created_at",
            task_in_future=in_future("task.created_at"),
            kept_in_future=in_future("kept.created_at"),
            started_in_future=in_future("task.started_at"),
            kept_disagrees="NOT kept.valid",
        )
    } AS doubts,
               {_TASK}, kept.id AS "kept.id", kept.due_at AS "kept.due_at",
               kept.created_at AS "kept.created_at"
        FROM (
            SELECT ticket_id, kind, reminder_revision FROM reminders_task
            WHERE status IN ('WAITING', 'RUNNING') AND kind = 'REMINDER'
            GROUP BY ticket_id, kind, reminder_revision HAVING count(*) > 1
        ) AS plan
        JOIN reminders_task AS task USING (ticket_id, kind, reminder_revision)
        JOIN LATERAL (
            SELECT copy.id, copy.created_at, copy.due_at,
                   copy.due_at = ticket.due_at AND copy.team_id = ticket.team_id AS valid
            FROM reminders_task AS copy JOIN tickets_ticket AS ticket ON ticket.id = copy.ticket_id
            WHERE copy.ticket_id = task.ticket_id AND copy.kind = task.kind
              AND copy.reminder_revision = task.reminder_revision
              AND copy.status IN ('WAITING', 'RUNNING')
              AND ticket.reminder_revision = copy.reminder_revision AND ticket.due_at IS NOT NULL
            ORDER BY valid DESC, copy.id DESC LIMIT 1
        ) AS kept ON kept.id <> task.id
        WHERE {{scope}} AND NOT EXISTS ({SENT.format("task", "ticket_id")})
    """

    def repair(self, found: Sequence[Found], *, team_id: int, now: datetime) -> None:
        tasks = _tasks(found)
        tickets = Ticket.objects.in_bulk([task.ticket_id for task in tasks])
        move(
            [_ended(task, tickets[task.ticket_id], SkipReason.DUPLICATE) for task in tasks], now=now
        )


@check
class NotPlanned(Check):
    """A ticket with a due time that nothing stands for: no task to come, no reminder sent."""

    code = "not_planned"
    title = _("A due ticket without a task")
    meaning = _(
        "The ticket has a due time, but no task stands for it and no reminder was sent. The task is planned; a due time that has passed fires at once. If somebody was told already, or the dates make no sense, somebody has to decide."
    )
    subject = Subject.TICKET
    severity = Severity.ERROR
    live = "ticket.due_at IS NOT NULL"
    action = Action.PLANNED
    # FAILED is somebody's turn: planning another task would go round the limit of attempts.
    query = f"""
        SELECT ticket.id AS subject, ticket.team_id AS team,
               coalesce(last.finished_at, ticket.updated_at) AS since,
               {
        doubts(
            already_told="cardinality(told.users) > 0",
            evidence_of_sending="last.evidence ->> 'outcome' = 'fired'",
            due_too_far="ticket.due_at > ticket.updated_at + interval '7 days'",
            due_before_ticket="ticket.due_at < ticket.created_at",
            changed_before_ticket="ticket.updated_at < ticket.created_at",
            ticket_in_future=in_future("ticket.updated_at"),
            task_in_future=in_future("last.finished_at"),
        )
    } AS doubts,
               {_TICKET}, ticket.created_at AS "ticket.created_at", last.id AS "task.id",
               last.status AS "task.status", last.finished_at AS "task.finished_at",
               last.evidence ->> 'outcome' AS "task.evidence.outcome",
               told.users AS "notice.user_id"
        FROM tickets_ticket AS ticket
        LEFT JOIN LATERAL (
            SELECT task.id, task.status, task.finished_at, task.evidence
            FROM reminders_task AS task
            WHERE task.ticket_id = ticket.id AND task.reminder_revision = ticket.reminder_revision
            ORDER BY task.id DESC LIMIT 1
        ) AS last ON true
        CROSS JOIN LATERAL (
            SELECT ARRAY(
                SELECT notice.user_id FROM notifications_remindernotification AS notice
                WHERE notice.ticket_id = ticket.id
                  AND notice.reminder_revision = ticket.reminder_revision) AS users
        ) AS told
        WHERE {{scope}} AND ticket.due_at IS NOT NULL
          AND NOT EXISTS (
              SELECT FROM reminders_task AS task
              WHERE task.ticket_id = ticket.id
                AND task.reminder_revision = ticket.reminder_revision
                AND task.status IN ('WAITING', 'RUNNING', 'FAILED'))
          AND NOT EXISTS ({SENT.format("ticket", "id")})
    """

    def repair(self, found: Sequence[Found], *, team_id: int, now: datetime) -> None:
        tickets = Ticket.objects.filter(pk__in=[each.subject_id for each in found])
        for ticket in tickets.order_by("id"):
            schedule.plan_reminder(ticket=ticket, owner_id=ticket.creator_id, now=now)


@check
class WrongTime(Check):
    """A task that waits for another time than its ticket says. The processor would look too late, or in vain."""

    code = "wrong_time"
    title = _("Waiting for the wrong time")
    meaning = _(
        "The task stands for the ticket's present reminder, but for another due time, so something changed one of them alone. The ticket says when: the task is ended, and another is planned for the ticket's due time. If that time makes no sense, somebody has to decide."
    )
    subject = Subject.TASK
    severity = Severity.ERROR
    live = "task.status = 'WAITING'"
    action = Action.PLANNED
    # A RUNNING task is in a worker's hands, which reads the ticket; one that goes back to wait is seen then.
    query = f"""
        SELECT task.id AS subject, task.team_id AS team,
               greatest(task.created_at, ticket.updated_at) AS since,
               {
        doubts(
            due_too_far="ticket.due_at > ticket.updated_at + interval '7 days'",
            due_before_ticket="ticket.due_at < ticket.created_at",
            changed_before_ticket="ticket.updated_at < ticket.created_at",
            ticket_in_future=in_future("ticket.updated_at"),
            task_in_future=in_future("task.created_at"),
        )
    } AS doubts,
               {_TASK}, {_TICKET}, ticket.created_at AS "ticket.created_at"
        FROM reminders_task AS task JOIN tickets_ticket AS ticket ON ticket.id = task.ticket_id
        WHERE {{scope}} AND task.status = 'WAITING' AND task.due_at <> ticket.due_at
          AND ticket.reminder_revision = task.reminder_revision AND ticket.team_id = task.team_id
          AND NOT EXISTS ({SENT.format("task", "ticket_id")})
    """

    def repair(self, found: Sequence[Found], *, team_id: int, now: datetime) -> None:
        tasks = _tasks(found)
        tickets = Ticket.objects.in_bulk([task.ticket_id for task in tasks])
        move(
            [_ended(task, tickets[task.ticket_id], SkipReason.REPLACED) for task in tasks], now=now
        )
        for task in tasks:
            schedule.plan_reminder(ticket=tickets[task.ticket_id], owner_id=task.owner_id, now=now)


@check
class ExpiredLease(Check):
    """RUNNING past its lease: the worker disappeared, and the recovery scan has not been there yet."""

    code = "expired_lease"
    title = _("Running past its lease")
    meaning = _(
        "The worker disappeared. The task goes back in the queue with the next run, which counts as an attempt. Many of these: the recovery job of beat does not run."
    )
    subject = Subject.TASK
    severity = Severity.WARNING
    live = "task.status = 'RUNNING'"
    action = Action.REQUEUED
    query = f"""
        SELECT task.id AS subject, task.team_id AS team, task.lease_expires_at AS since,
               {
        doubts(
            started_in_future=in_future("task.started_at"),
            never_started="task.started_at IS NULL",
            started_before_task="task.started_at < task.created_at",
            task_in_future=in_future("task.created_at"),
        )
    } AS doubts,
               {_TASK}, task.started_at AS "task.started_at",
               task.lease_expires_at AS "task.lease_expires_at",
               task.execution_id AS "task.execution_id", task.attempts AS "task.attempts"
        FROM reminders_task AS task
        WHERE {{scope}} AND task.status = 'RUNNING' AND task.lease_expires_at < %(now)s
    """

    def repair(self, found: Sequence[Found], *, team_id: int, now: datetime) -> None:
        recovery.requeue(_tasks(found), now=now)


@check
class MessageLost(Check):
    """Overdue, waiting, and not published for longer than the dispatcher ever lets pass."""

    code = "message_lost"
    title = _("Overdue and forgotten by the broker")
    meaning = _(
        "No message was sent for longer than the dispatch job ever waits, so none is on its way. It is published again. Many of these: beat does not run. A publication in the future keeps the dispatch job from trying again; somebody has to decide."
    )
    subject = Subject.TASK
    severity = Severity.WARNING
    live = "task.status = 'WAITING'"
    action = Action.PUBLISHED
    # Of tasks that still stand for something; the others have findings of their own.
    _patience = f"interval '{outbox.FORGOTTEN_AFTER.total_seconds()} seconds'"
    query = f"""
        SELECT task.id AS subject, task.team_id AS team, task.available_at AS since,
               {
        doubts(
            published_in_future=in_future("task.dispatched_at"),
            available_before_task="task.available_at < task.created_at",
            task_in_future=in_future("task.created_at"),
        )
    } AS doubts,
               {_TASK}, task.available_at AS "task.available_at",
               task.dispatched_at AS "task.dispatched_at"
        FROM reminders_task AS task JOIN tickets_ticket AS ticket ON ticket.id = task.ticket_id
        WHERE {{scope}} AND task.status = 'WAITING' AND task.available_at < %(now)s - {_patience}
          AND (task.dispatched_at IS NULL OR task.dispatched_at < %(now)s - {_patience}
               OR {in_future("task.dispatched_at")})
          AND ticket.due_at IS NOT NULL AND ticket.reminder_revision = task.reminder_revision
          AND NOT EXISTS ({SENT.format("task", "ticket_id")})
    """

    def repair(self, found: Sequence[Found], *, team_id: int, now: datetime) -> None:
        outbox.publish_again(_tasks(found), now=now)


def _tasks(found: Sequence[Found]) -> list[Task]:
    """The rows of these findings, which the caller has locked."""
    return list(Task.objects.filter(pk__in=[each.subject_id for each in found]).order_by("id"))


def _ended(task: Task, ticket: Ticket, reason: SkipReason) -> Move:
    """The move that ends a task as skipped, by the audit."""
    return schedule.skipped(
        task,
        reason,
        ticket_version=ticket.version,
        revision=ticket.reminder_revision,
        cause=Cause.ENDED,
    )
