"""Setting, changing and cancelling a ticket's reminder."""

from datetime import timedelta

from django.utils.translation import gettext_lazy as _

from helpdesk.clock import database_now
from helpdesk.errors import InvalidInput
from reminders import schedule
from reminders.states import SkipReason
from tickets.history import record_change
from tickets.locks import actor_under_lock, locked_team
from tickets.models import Ticket
from tickets.services.checks import clean_text, require_status, require_version, ticket_under_lock
from tickets.states import ACTIVE, REMINDER_MINUTES, EventKind


def schedule_reminder(
    *,
    team_id: int,
    ticket_id: int,
    actor_id: int,
    version: int,
    minutes: int | None,
    note: str = "",
) -> Ticket:
    """Remind `minutes` from now (1 to 10080), or not at all (None). Staff only; not once resolved.

    Sets `due_at`, raises `reminder_revision` and `version` by one, ends every unfinished reminder
    task of the ticket and plans one for the new revision unless cancelled. Messages already at the
    broker are left there: they are for an older revision, and the processor's first gate drops them.
    """
    minutes = _clean_minutes(minutes)
    note = clean_text("note", note, required=False, max_length=200)
    with locked_team(team_id) as team:
        actor = actor_under_lock(team, actor_id)
        ticket = ticket_under_lock(team, ticket_id, actor)
        actor.require_staff()
        require_status(ticket, ACTIVE, _("A resolved or closed ticket has no reminder."))
        require_version(ticket, version)
        now = database_now()
        ticket.due_at = None if minutes is None else now + timedelta(minutes=minutes)
        ticket.reminder_note = "" if minutes is None else note
        ticket.reminder_set_by_id = None if minutes is None else actor.user_id
        ticket.reminder_revision += 1
        due = ticket.due_at.isoformat(timespec="seconds") if ticket.due_at else None
        record_change(
            ticket=ticket,
            kind=EventKind.REMINDER_SCHEDULED,
            actor=actor,
            now=now,
            changed=["due_at", "reminder_note", "reminder_set_by", "reminder_revision"],
            reason=f"set to {due}" if due else "cancelled",
            data={"minutes": minutes, "due_at": due, "note": ticket.reminder_note},
        )
        schedule.end_reminder(
            ticket=ticket,
            reason=SkipReason.CANCELLED if minutes is None else SkipReason.REPLACED,
            now=now,
            actor=actor,
        )
        if minutes is not None:
            schedule.plan_reminder(ticket=ticket, owner_id=ticket.creator_id, now=now)
    return ticket


def _clean_minutes(minutes: object) -> int | None:
    """A whole number in range, or None. `True` is an int in Python and 60.0 equals 60; neither was meant."""
    if minutes is None:
        return None
    if type(minutes) is not int or minutes not in REMINDER_MINUTES:
        raise InvalidInput(
            minutes=_("A whole number of minutes from %(first)d to %(last)d is needed.")
            % {"first": REMINDER_MINUTES.start, "last": REMINDER_MINUTES.stop - 1}
        )
    return minutes
