"""Reading tasks: what everybody outside this app sees of the queue, as frozen dataclasses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from notifications.selectors import notices
from reminders import evidence
from reminders.models import Task, TaskTransition
from reminders.recipients import Recipient, responsible_for
from reminders.states import ACTIVE, Cause, SkipReason, TaskStatus
from tickets.models import Ticket, TicketEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionRow:
    """One line of a task's history. The `…_code`s are for programs, the others in the reader's language."""

    at: datetime
    run: int
    from_status: str
    to_status: str
    cause: str
    detail: str
    actor_name: str
    from_code: str
    to_code: str
    cause_code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A task as pages show it. Labels and summary are in the reader's language."""

    id: int
    ticket_id: int
    ticket_number: int
    ticket_title: str
    reminder_revision: int
    run: int
    status: str
    status_label: str
    progress: int
    summary: str
    attempts: int
    last_error: str
    due_at: datetime | None
    available_at: datetime | None
    created_at: datetime
    finished_at: datetime | None
    owner_name: str
    evidence: Mapping[str, Any] | None = None
    history: Sequence[TransitionRow] = field(default=())

    @property
    def can_retry(self) -> bool:
        return self.status == TaskStatus.FAILED

    @property
    def is_active(self) -> bool:
        return self.status in ACTIVE


def task_list(
    *, team_id: int, status: str = "", before: int | None = None, limit: int = 50
) -> list[TaskRow]:
    """A team's tasks, newest first, one page of `limit`; `before` is the last id of the page before. One query."""
    wanted = Q(team=team_id)
    if status:
        wanted &= Q(status=status)
    if before is not None:
        wanted &= Q(pk__lt=before)
    return [_row(task) for task in _tasks(wanted)[:limit]]


def task_detail(*, team_id: int, task_id: int) -> TaskRow | None:
    """One task of the team with its history, None if there is none. Two queries."""
    task = _tasks(Q(team=team_id, pk=task_id)).first()
    if task is None:
        return None
    history = TaskTransition.objects.filter(task=task).select_related("actor").order_by("id")
    return _row(task, [_transition(row) for row in history])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderPanel:
    """What a ticket's reminder is at this moment, all read from the database."""

    due_at: datetime | None
    set_by: str
    note: str
    now: datetime
    recipients: Sequence[Recipient]
    task: TaskRow | None
    fired: "Firing | None"

    @property
    def is_overdue(self) -> bool:
        """Due exactly now is due."""
        return self.due_at is not None and self.due_at <= self.now

    @property
    def seconds_left(self) -> int:
        """Whole seconds until it is due by the database's clock, never negative."""
        if self.due_at is None or self.is_overdue:
            return 0
        return round((self.due_at - self.now).total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A reminder that was sent for the present intent."""

    at: datetime
    late: timedelta
    names: Sequence[str]
    proven: bool


def reminder_panel(*, ticket: Ticket, now: datetime) -> ReminderPanel:
    """The reminder of a ticket (with `reminder_set_by` loaded): until when, by whom, for whom, and what has become of it."""
    task = _tasks(Q(ticket=ticket.pk, reminder_revision=ticket.reminder_revision)).first()
    event = TicketEvent.objects.filter(
        ticket=ticket, kind="TIMEOUT_REMINDED", reminder_revision=ticket.reminder_revision
    ).first()
    responsible = responsible_for(team_id=ticket.team_id, tickets=[ticket])[ticket.pk]
    return ReminderPanel(
        due_at=ticket.due_at,
        set_by=ticket.reminder_set_by.display_name if ticket.reminder_set_by else "",
        note=ticket.reminder_note,
        now=now,
        recipients=responsible if ticket.due_at and event is None else (),
        task=_row(task) if task else None,
        fired=Firing(
            at=event.created_at,
            late=timedelta(milliseconds=event.data["late_ms"]),
            names=[person["name"] for person in event.data["recipients"]],
            proven=task is not None and is_proven(task_id=task.pk),
        )
        if event
        else None,
    )


def is_proven(*, task_id: int) -> bool:
    """True if a sent reminder's evidence can be recomputed from the rows it names, and agrees."""
    proof = Task.objects.values_list("evidence", flat=True).filter(pk=task_id).first()
    if not proof or proof.get("outcome") != "fired":
        return False
    event = TicketEvent.objects.filter(pk=proof["event"]).first()
    if event is None:
        return False
    rows = notices(ids=proof["notifications"])
    return bool(evidence.firing_checksum(event, rows) == proof["checksum"])


def _tasks(wanted: Q) -> QuerySet[Task]:
    return Task.objects.filter(wanted).select_related("ticket", "owner").order_by("-id")


def _row(task: Task, history: Sequence[TransitionRow] = ()) -> TaskRow:
    return TaskRow(
        id=task.pk,
        ticket_id=task.ticket_id,
        ticket_number=task.ticket.number,
        ticket_title=task.ticket.title,
        reminder_revision=task.reminder_revision,
        run=task.run,
        status=task.status,
        status_label=str(TaskStatus(task.status).label),
        progress=task.progress,
        summary=evidence.summarise(task.evidence),
        attempts=task.attempts,
        last_error=task.last_error,
        due_at=task.due_at,
        available_at=task.available_at,
        created_at=task.created_at,
        finished_at=task.finished_at,
        owner_name=task.owner.display_name,
        evidence=task.evidence,
        history=history,
    )


def _transition(row: TaskTransition) -> TransitionRow:
    return TransitionRow(
        at=row.at,
        run=row.run,
        from_status=str(TaskStatus(row.from_status).label) if row.from_status else "",
        to_status=str(TaskStatus(row.to_status).label),
        cause=str(Cause(row.cause).label),
        detail=str(SkipReason(row.detail).label)
        if row.cause in (Cause.SKIPPED, Cause.ENDED)
        else row.detail,
        actor_name=row.actor.display_name if row.actor else "",
        from_code=row.from_status or "",
        to_code=row.to_status,
        cause_code=row.cause,
    )
