"""Opening a ticket and changing what it says."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from helpdesk.clock import database_now
from helpdesk.errors import InvalidInput
from reminders import schedule
from tickets import receipts
from tickets.history import record_change, record_creation
from tickets.locks import actor_under_lock, locked_team
from tickets.models import Ticket
from tickets.receipts import Request
from tickets.services.checks import (
    clean_choice,
    clean_text,
    require_not_closed,
    require_version,
    ticket_under_lock,
)
from tickets.states import DEFAULT_DEADLINE, EventKind, Priority


def create_ticket(
    *,
    team_id: int,
    actor_id: int,
    title: str,
    description: str,
    priority: str = Priority.NORMAL,
    request: Request | None = None,
) -> Ticket:
    """Open a ticket with the default deadline of its priority, and plan its reminder. Any member may."""
    title = clean_text("title", title, max_length=200)
    description = clean_text("description", description)
    priority = Priority(clean_choice("priority", priority, Priority.values))
    with locked_team(team_id) as team:
        actor = actor_under_lock(team, actor_id)
        receipts.claim(request)
        now = database_now()
        team.last_ticket_number += 1
        team.save(update_fields=["last_ticket_number"])
        due_at = now + DEFAULT_DEADLINE[priority]
        ticket = Ticket.objects.create(
            team=team,
            number=team.last_ticket_number,
            title=title,
            description=description,
            priority=priority,
            creator_id=actor.user_id,
            due_at=due_at,
            created_at=now,
            updated_at=now,
        )
        record_creation(
            ticket=ticket,
            actor=actor,
            now=now,
            data={"priority": priority, "due_at": due_at.isoformat()},
        )
        schedule.plan_reminder(ticket=ticket, owner_id=ticket.creator_id, now=now)
        receipts.keep(request, ticket, now=now)
    return ticket


def edit_ticket(
    *,
    team_id: int,
    ticket_id: int,
    actor_id: int,
    version: int,
    title: str | None = None,
    description: str | None = None,
    priority: str | None = None,
) -> Ticket:
    """Change title, description or priority. Staff only; not on a closed ticket.

    The due time stays: it belongs to the reminder intent, which only a person changes.
    """
    wanted: dict[str, Any] = {}
    if title is not None:
        wanted["title"] = clean_text("title", title, max_length=200)
    if description is not None:
        wanted["description"] = clean_text("description", description)
    if priority is not None:
        wanted["priority"] = clean_choice("priority", priority, Priority.values)
    if not wanted:
        raise InvalidInput(title=_("There is nothing to change."))
    with locked_team(team_id) as team:
        actor = actor_under_lock(team, actor_id)
        ticket = ticket_under_lock(team, ticket_id, actor)
        actor.require_staff()
        require_not_closed(ticket)
        require_version(ticket, version)
        before = {field: getattr(ticket, field) for field in wanted}
        if before == wanted:
            return ticket
        for field, value in wanted.items():
            setattr(ticket, field, value)
        record_change(
            ticket=ticket,
            kind=EventKind.EDITED,
            actor=actor,
            now=database_now(),
            changed=list(wanted),
            data={
                field: {"from": before[field], "to": value}
                for field, value in wanted.items()
                if before[field] != value
            },
        )
    return ticket
