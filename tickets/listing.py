"""Lists of tickets page by page, so that nothing is skipped and nothing comes twice while tickets change.

By number that is easy: it never changes. By last change a ticket would jump over the reader when
somebody touches it. So such a list is shown as it was when its first page was read: the
position keeps that moment, and a ticket that has changed since stands where it stood then, which its
history knows. The moment is that of the team's latest change. Every write of a team holds its lock from
before it reads the clock until it commits, so whatever is dated up to there can be seen.
"""

from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from itertools import islice

from django.db.models import F, Max, OuterRef, Q, QuerySet, Subquery, TextChoices

from helpdesk.errors import NotAllowed
from tickets.models import Ticket, TicketEvent
from tickets.selectors import TicketFilter, Viewer, matching_tickets


class Order(TextChoices):
    """How a list is ordered; the newest first with a minus."""

    NUMBER = "number"
    NUMBER_DESC = "-number"
    UPDATED = "updated_at"
    UPDATED_DESC = "-updated_at"

    @property
    def is_descending(self) -> bool:
        return self.value.startswith("-")

    @property
    def is_by_number(self) -> bool:
        return self in (Order.NUMBER, Order.NUMBER_DESC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Behind the ticket of this number; in a list by last change also when it had changed, and as of when the list is."""

    number: int
    at: datetime | None = None
    as_of: datetime | None = None


def ticket_slice(
    *,
    viewer: Viewer,
    wanted: TicketFilter,
    order: Order,
    after: Position | None,
    limit: int,
    now: datetime,
) -> tuple[list[Ticket], Position | None]:
    """The next tickets in this order, and where to go on; None at the end. One query by number, else three at the most.

    Raises `NotAllowed` for customers who ask for the order of changes.
    """
    tickets = matching_tickets(viewer=viewer, wanted=wanted, now=now)
    if order.is_by_number:
        if after:
            tickets = tickets.filter(
                **{"number__lt" if order.is_descending else "number__gt": after.number}
            )
        found = list(tickets.order_by(order.value)[: limit + 1])
        position = Position(number=found[limit - 1].number) if len(found) > limit else None
        return found[:limit], position
    if not viewer.is_staff:
        raise NotAllowed
    as_of = after.as_of if after else _latest_change(viewer)
    if as_of is None:
        return [], None
    return _by_change(tickets, order, after, as_of, limit)


def _latest_change(viewer: Viewer) -> datetime | None:
    latest: datetime | None = Ticket.objects.filter(team=viewer.team).aggregate(
        at=Max("updated_at")
    )["at"]
    return latest


def _by_change(
    tickets: QuerySet[Ticket], order: Order, after: Position | None, as_of: datetime, limit: int
) -> tuple[list[Ticket], Position | None]:
    """The tickets that have stood still, merged with those that have moved, at their places of then."""
    then = (
        TicketEvent.objects.filter(ticket=OuterRef("pk"), created_at__lte=as_of)
        .order_by("-version")
        .values("created_at")[:1]
    )
    # A ticket that was opened later has no such event: it belongs to the next reading of the list.
    parts = (
        tickets.filter(updated_at__lte=as_of).annotate(stood_at=F("updated_at")),
        tickets.filter(updated_at__gt=as_of)
        .annotate(stood_at=Subquery(then))
        .filter(stood_at__isnull=False),
    )
    # Of those that stood still, the column itself is asked, so that its index serves.
    found = [
        _behind(after, part, key, order)[: limit + 1]
        for part, key in zip(parts, ("updated_at", "stood_at"), strict=True)
    ]
    page = list(
        islice(
            merge(
                *found,
                key=lambda ticket: (ticket.stood_at, ticket.number),  # type: ignore[attr-defined]
                reverse=order.is_descending,
            ),
            limit + 1,
        )
    )
    if len(page) <= limit:
        return page, None
    last = page[limit - 1]
    return page[:limit], Position(
        number=last.number,
        at=last.stood_at,  # type: ignore[attr-defined]
        as_of=as_of,
    )


def _behind(
    after: Position | None, tickets: QuerySet[Ticket], key: str, order: Order
) -> QuerySet[Ticket]:
    """What comes after the position, by this key and, where it is the same, by number."""
    side, sign = ("lt", "-") if order.is_descending else ("gt", "")
    if after:
        tickets = tickets.filter(
            Q(**{f"{key}__{side}": after.at})
            | Q(**{key: after.at, f"number__{side}": after.number})
        )
    return tickets.order_by(f"{sign}{key}", f"{sign}number")
