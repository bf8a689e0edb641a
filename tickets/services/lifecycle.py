"""OPEN → IN_PROGRESS → RESOLVED → CLOSED, and back from RESOLVED. What each step does to the reminder stands here alone."""

from datetime import datetime

from django.utils.translation import gettext_lazy as _

from helpdesk.clock import database_now
from helpdesk.errors import InvalidTransition
from reminders import schedule
from reminders.states import SkipReason
from tickets.history import record_change
from tickets.locks import Actor, actor_under_lock, locked_team
from tickets.models import Ticket
from tickets.services.checks import clean_choice, clean_text, require_version, ticket_under_lock
from tickets.services.linking import require_no_open_blocker
from tickets.states import (
    DEFAULT_DEADLINE,
    FINISHING,
    NOTE_REQUIRED,
    TRANSITIONS,
    EventKind,
    Priority,
    Status,
)


def start_ticket(*, team_id: int, ticket_id: int, actor_id: int, version: int) -> Ticket:
    """OPEN → IN_PROGRESS. The reminder stays as it is."""
    return transition_ticket(
        team_id=team_id,
        ticket_id=ticket_id,
        actor_id=actor_id,
        version=version,
        to=Status.IN_PROGRESS,
    )


def resolve_ticket(
    *, team_id: int, ticket_id: int, actor_id: int, version: int, note: str
) -> Ticket:
    """IN_PROGRESS → RESOLVED, with a note. Ends the reminder and marks its notices as handled."""
    return transition_ticket(
        team_id=team_id,
        ticket_id=ticket_id,
        actor_id=actor_id,
        version=version,
        to=Status.RESOLVED,
        note=note,
    )


def close_ticket(*, team_id: int, ticket_id: int, actor_id: int, version: int) -> Ticket:
    """RESOLVED → CLOSED, for good."""
    return transition_ticket(
        team_id=team_id,
        ticket_id=ticket_id,
        actor_id=actor_id,
        version=version,
        to=Status.CLOSED,
    )


def reopen_ticket(
    *, team_id: int, ticket_id: int, actor_id: int, version: int, note: str
) -> Ticket:
    """RESOLVED → OPEN, with a note. Starts a new default deadline; its task is owned by the actor."""
    return transition_ticket(
        team_id=team_id,
        ticket_id=ticket_id,
        actor_id=actor_id,
        version=version,
        to=Status.OPEN,
        note=note,
    )


def transition_ticket(
    *, team_id: int, ticket_id: int, actor_id: int, version: int, to: str, note: str = ""
) -> Ticket:
    """Take one step of the lifecycle. Staff only.

    A step that is not in `TRANSITIONS` is `InvalidTransition`, and so is resolving or closing while
    a blocker is open or in progress.
    """
    to = Status(clean_choice("to", to, Status.values))
    note = clean_text("note", note, required=False, max_length=2000)
    with locked_team(team_id) as team:
        actor = actor_under_lock(team, actor_id)
        ticket = ticket_under_lock(team, ticket_id, actor)
        actor.require_staff()
        kind = _step(ticket, to)
        require_version(ticket, version)
        if kind in FINISHING:
            require_no_open_blocker(ticket)
        if kind in NOTE_REQUIRED:
            clean_text("note", note)
        now = database_now()
        before = ticket.status
        ticket.status = to
        changed = ["status", *_move_reminder(ticket, kind, actor, now)]
        record_change(
            ticket=ticket,
            kind=kind,
            actor=actor,
            now=now,
            changed=changed,
            reason=note,
            data={
                "from": before,
                "to": to,
                "due_at": ticket.due_at.isoformat() if ticket.due_at else None,
            },
        )
        _carry_out(ticket, kind, actor, now)
    return ticket


def _step(ticket: Ticket, to: Status) -> EventKind:
    kind = TRANSITIONS.get((Status(ticket.status), to))
    if kind is None:
        raise InvalidTransition(
            _("A ticket cannot go from “%(from)s” to “%(to)s”.")
            % {"from": Status(ticket.status).label, "to": to.label}
        )
    return kind


def _move_reminder(ticket: Ticket, kind: EventKind, actor: Actor, now: datetime) -> list[str]:
    """Set the reminder intent that belongs to the step. Returns the fields it changed."""
    match kind:
        case EventKind.RESOLVED:
            ticket.resolved_at = now
            ticket.due_at = None
        case EventKind.CLOSED:
            ticket.closed_at = now
            ticket.due_at = None
        case EventKind.REOPENED:
            ticket.resolved_at = None
            ticket.due_at = now + DEFAULT_DEADLINE[Priority(ticket.priority)]
        case _:
            return []
    ticket.reminder_note = ""
    ticket.reminder_set_by_id = actor.user_id if kind == EventKind.REOPENED else None
    ticket.reminder_revision += 1
    return [
        "due_at",
        "resolved_at",
        "closed_at",
        "reminder_revision",
        "reminder_note",
        "reminder_set_by",
    ]


def _carry_out(ticket: Ticket, kind: EventKind, actor: Actor, now: datetime) -> None:
    """End and plan the reminder tasks that follow from the new intent."""
    match kind:
        case EventKind.RESOLVED:
            schedule.end_reminder(ticket=ticket, reason=SkipReason.RESOLVED, now=now, actor=actor)
        case EventKind.CLOSED:
            schedule.end_reminder(ticket=ticket, reason=SkipReason.CLOSED, now=now, actor=actor)
        case EventKind.REOPENED:
            schedule.end_reminder(ticket=ticket, reason=SkipReason.REPLACED, now=now, actor=actor)
            schedule.plan_reminder(ticket=ticket, owner_id=actor.user_id, now=now)
