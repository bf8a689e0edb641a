"""Blockers: which ticket waits for which other one of its team, before it can be resolved.

Only the ticket that waits changes and records it; its blocker, which somebody else may be working
on, keeps its version. Statuses of both stand still under the team lock, and so does every chain.
"""

from typing import Any, Final

from django.db import connection
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from helpdesk.clock import database_now
from helpdesk.errors import InvalidInput, InvalidTransition, NotFound
from tickets import receipts
from tickets.history import record_change
from tickets.locks import actor_under_lock, locked_team
from tickets.models import Ticket, TicketLink
from tickets.receipts import Request
from tickets.services.checks import require_status, require_version, ticket_under_lock
from tickets.states import ACTIVE, EventKind

# Does one ticket wait for another, directly or through others? UNION drops what was seen already,
# so that it ends even among rows that go round.
_WAITS: Final = """
WITH RECURSIVE chain (id) AS (
    SELECT blocker_id FROM tickets_ticketlink WHERE ticket_id = %(waiting)s
    UNION
    SELECT link.blocker_id FROM tickets_ticketlink AS link JOIN chain ON link.ticket_id = chain.id
)
SELECT EXISTS (SELECT 1 FROM chain WHERE id = %(wanted)s)
"""


def add_blocker(
    *,
    team_id: int,
    ticket_id: int,
    actor_id: int,
    version: int,
    number: int,
    request: Request | None = None,
) -> Ticket:
    """Let the ticket wait for another of its team, given by its number there. Staff only; not once resolved.

    `InvalidInput` unless the other one exists, is open or in progress, is not a blocker already and
    does not itself wait for this ticket.
    """
    _require_whole("number", number)
    with locked_team(team_id) as team:
        actor = actor_under_lock(team, actor_id)
        ticket = ticket_under_lock(team, ticket_id, actor)
        actor.require_staff()
        receipts.claim(request)
        _require_active(ticket)
        require_version(ticket, version)
        blocker = _blocker(ticket, number)
        _require_no_circle(ticket, blocker)
        now = database_now()
        link = TicketLink.objects.create(
            team=team, ticket=ticket, blocker=blocker, created_by_id=actor.user_id, created_at=now
        )
        record_change(ticket=ticket, kind=EventKind.BLOCKED, actor=actor, now=now, data=_data(link))
        receipts.keep(request, link, now=now)
    return ticket


def remove_blocker(
    *, team_id: int, ticket_id: int, actor_id: int, version: int, link_id: int
) -> Ticket:
    """Let the ticket no longer wait for that blocker. Staff only; not once resolved.

    `NotFound` if the link is not one of this ticket's.
    """
    _require_whole("link_id", link_id)
    with locked_team(team_id) as team:
        actor = actor_under_lock(team, actor_id)
        ticket = ticket_under_lock(team, ticket_id, actor)
        actor.require_staff()
        _require_active(ticket)
        require_version(ticket, version)
        link = (
            TicketLink.objects.select_related("blocker").filter(pk=link_id, ticket=ticket).first()
        )
        if link is None:
            raise NotFound
        data = _data(link)
        link.delete()
        record_change(
            ticket=ticket, kind=EventKind.UNBLOCKED, actor=actor, now=database_now(), data=data
        )
    return ticket


def require_no_open_blocker(ticket: Ticket) -> None:
    """For the steps that finish a ticket. Raises `InvalidTransition` that names what is waited for."""
    numbers = list(
        Ticket.objects.filter(blocked_links__ticket=ticket, status__in=ACTIVE)
        .order_by("number")
        .values_list("number", flat=True)
    )
    if numbers:
        raise InvalidTransition(
            ngettext(
                "This ticket waits for %(numbers)s, which is still open.",
                "This ticket waits for %(numbers)s, which are still open.",
                len(numbers),
            )
            % {"numbers": ", ".join(f"#{number}" for number in numbers)},
            blockers=numbers,
        )


def _require_whole(field: str, value: object) -> None:
    """`True` is an int in Python and was not meant."""
    if type(value) is not int:
        raise InvalidInput(**{field: _("A whole number is needed.")})


def _require_active(ticket: Ticket) -> None:
    require_status(
        ticket, ACTIVE, _("The blockers of a resolved or closed ticket cannot be changed.")
    )


def _blocker(ticket: Ticket, number: int) -> Ticket:
    blocker = Ticket.objects.filter(team=ticket.team_id, number=number).first()
    if blocker is None:
        raise InvalidInput(
            number=_("There is no ticket #%(number)d in this team.") % {"number": number}
        )
    if blocker.pk == ticket.pk:
        raise InvalidInput(number=_("A ticket cannot wait for itself."))
    # Before its status: that a blocker was resolved is no news to whoever sees it in the list.
    if TicketLink.objects.filter(ticket=ticket, blocker=blocker).exists():
        raise InvalidInput(
            number=_("This ticket already waits for #%(number)d.") % {"number": number}
        )
    if not blocker.is_active:
        raise InvalidInput(
            number=_("#%(number)d is resolved or closed: there is nothing left to wait for.")
            % {"number": number}
        )
    return blocker


def _require_no_circle(ticket: Ticket, blocker: Ticket) -> None:
    """Two tickets that wait for each other could never be resolved. Links of resolved tickets count: they may be reopened."""
    with connection.cursor() as cursor:
        cursor.execute(_WAITS, {"waiting": blocker.pk, "wanted": ticket.pk})
        (circle,) = cursor.fetchone()
    if circle:
        raise InvalidInput(
            number=_("#%(number)d itself waits for this ticket, directly or through others.")
            % {"number": blocker.number}
        )


def _data(link: TicketLink) -> dict[str, Any]:
    """What an event keeps of a link: ids to look up, number and title as they were."""
    blocker = link.blocker
    return {
        "link": link.pk,
        "blocker": {"ticket": blocker.pk, "number": blocker.number, "title": blocker.title},
    }
