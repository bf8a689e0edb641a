"""The only writer of a ticket's version and of its events: one event for each version, together.

So "what happened to this ticket" is complete by construction: version n has n + 1 events, and the
database refuses a second one for the same version.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django.db import models

from tickets.locks import Actor, require_team_lock
from tickets.models import Ticket, TicketEvent
from tickets.states import EventKind

SYSTEM_NAME: Final = "system"
_BATCH: Final = 1000


def record_creation(
    *, ticket: Ticket, actor: Actor, now: datetime, data: Mapping[str, Any]
) -> None:
    """The event of version 0."""
    require_team_lock(ticket.team_id)
    _event(ticket, EventKind.CREATED, actor, now, data=data).save(force_insert=True)


def record_change(
    *,
    ticket: Ticket,
    kind: EventKind,
    actor: Actor,
    now: datetime,
    changed: Sequence[str] = (),
    reason: str = "",
    data: Mapping[str, Any] | None = None,
) -> TicketEvent:
    """Save `changed` fields of the ticket, raise its version and record the event."""
    require_team_lock(ticket.team_id)
    ticket.version += 1
    ticket.updated_at = now
    ticket.save(update_fields=[*changed, "version", "updated_at"])
    event = _event(ticket, kind, actor, now, reason=reason, data=data or {})
    event.save(force_insert=True)
    return event


def record_changes(
    *,
    tickets: Sequence[Ticket],
    kind: EventKind,
    actor: Actor | None,
    now: datetime,
    changed: Mapping[str, Any] | None = None,
    data: Mapping[int, Mapping[str, Any]],
) -> list[TicketEvent]:
    """The same change on many tickets of one locked team, in a number of statements that does not grow with them.

    `changed` maps fields to their new value, `data` ticket ids to what the event keeps. `actor` None
    is the system. The tickets passed in carry their new version afterwards.
    """
    if not tickets:
        return []
    require_team_lock(tickets[0].team_id)
    for ticket in tickets:
        ticket.version += 1
        ticket.updated_at = now
    ids = [ticket.pk for ticket in tickets]
    Ticket.objects.filter(pk__in=ids).update(
        version=models.F("version") + 1, updated_at=now, **(changed or {})
    )
    return TicketEvent.objects.bulk_create(
        [_event(ticket, kind, actor, now, data=data[ticket.pk]) for ticket in tickets],
        batch_size=_BATCH,
    )


def _event(
    ticket: Ticket,
    kind: EventKind,
    actor: Actor | None,
    now: datetime,
    *,
    data: Mapping[str, Any],
    reason: str = "",
) -> TicketEvent:
    return TicketEvent(
        ticket=ticket,
        kind=kind,
        version=ticket.version,
        reminder_revision=ticket.reminder_revision,
        actor_id=actor.user_id if actor else None,
        actor_name=actor.name if actor else SYSTEM_NAME,
        reason=reason,
        data=dict(data),
        created_at=now,
    )
