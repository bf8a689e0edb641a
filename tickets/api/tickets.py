"""Tickets: finding, opening, and everything that changes one."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from helpdesk.api import pages
from helpdesk.api.schema import operation
from helpdesk.api.views import fields_named, with_etag
from helpdesk.clock import database_now
from tickets import listing, services
from tickets.api.shared import TeamView, TicketView, shown
from tickets.listing import Order, Position
from tickets.selectors import TicketFilter
from tickets.serializers import (
    AssignInput,
    EditInput,
    NewTicketInput,
    ScheduleInput,
    TicketConflictSerializer,
    TicketDetailSerializer,
    TicketPage,
    TicketQuery,
    TicketSerializer,
    TransitionInput,
)


class TicketsView(TeamView):
    @operation(
        "list_tickets",
        "Tickets of the team",
        tag="tickets",
        query=TicketQuery,
        answers=TicketPage,
        refuses=[403, 404],
        description="Customers find their own.",
    )
    def get(self, request: Request, team: str) -> Response:
        query = self.query(TicketQuery)
        order = Order(query["order"])
        found, position = listing.ticket_slice(
            viewer=self.viewer,
            wanted=_filter(query),
            order=order,
            after=_position(query.get("cursor"), order),
            limit=query["limit"],
            now=database_now(),
        )
        return Response(
            {
                "next": pages.next_address(request, _cursor(position)),
                "results": TicketSerializer(found, many=True, context={"viewer": self.viewer}).data,
            }
        )

    @operation(
        "create_ticket",
        "Open a ticket",
        tag="tickets",
        takes=NewTicketInput,
        answers=TicketDetailSerializer,
        status=201,
        refuses=[404],
        creates=True,
        description="Any member may. It is due after the default deadline of its priority: urgent 1 h, "
        "high 4 h, normal 24 h, low 48 h.",
    )
    def post(self, request: Request, team: str) -> Response:
        return self.create(
            services.create_ticket,
            lambda ticket: shown(ticket, self.viewer),
            **self.body(NewTicketInput),
        )


def _filter(query: dict[str, Any]) -> TicketFilter:
    return TicketFilter(
        statuses=query.get("status", ()),
        priorities=query.get("priority", ()),
        assignee=query.get("assignee", ""),
        creator=query.get("creator", ""),
        overdue=query.get("overdue"),
        due_after=query.get("due_after"),
        due_before=query.get("due_before"),
        updated_since=query.get("updated_since"),
        search=query.get("search", ""),
    )


def _cursor(position: Position | None) -> str | None:
    if position is None:
        return None
    if position.at is None or position.as_of is None:
        return pages.encode(position.number)
    return pages.encode(position.number, position.at.isoformat(), position.as_of.isoformat())


def _position(cursor: str | None, order: Order) -> Position | None:
    if order.is_by_number:
        values = pages.decode(cursor, int)
        return Position(number=values[0]) if values else None
    values = pages.decode(cursor, int, str, str)
    if values is None:
        return None
    number, at, as_of = values
    return Position(number=number, at=pages.moment(at), as_of=pages.moment(as_of))


class OneTicketView(TicketView):
    @operation(
        "get_ticket", "A ticket", tag="tickets", answers=TicketDetailSerializer, refuses=[404]
    )
    def get(self, request: Request, team: str, number: int) -> Response:
        return with_etag(self.shown(self.ticket))

    @operation(
        "edit_ticket",
        "Change title, description or priority",
        tag="tickets",
        takes=EditInput,
        answers=TicketDetailSerializer,
        refuses=[403, 404],
        versioned=True,
        conflict=TicketConflictSerializer,
        description="For staff; not on a closed ticket. The due time stays.",
    )
    def patch(self, request: Request, team: str, number: int) -> Response:
        self.require_staff()
        values = self.body(EditInput)
        values["version"] = self.seen_version(values)
        return self.write(services.edit_ticket, **values)


class ScheduleView(TicketView):
    @operation(
        "schedule_reminder",
        "Set or cancel the reminder",
        tag="tickets",
        takes=ScheduleInput,
        answers=TicketDetailSerializer,
        refuses=[403, 404],
        versioned=True,
        conflict=TicketConflictSerializer,
        description="For staff; not on a resolved or closed ticket. At that time whoever is responsible "
        "then is reminded, once.",
    )
    def post(self, request: Request, team: str, number: int) -> Response:
        self.require_staff()
        values = self.body(ScheduleInput)
        values["version"] = self.seen_version(values)
        return self.write(services.schedule_reminder, **values)


class TransitionView(TicketView):
    @operation(
        "transition_ticket",
        "Take the next step",
        tag="tickets",
        takes=TransitionInput,
        answers=TicketDetailSerializer,
        refuses=[403, 404],
        versioned=True,
        conflict=TicketConflictSerializer,
        description="For staff. OPEN → IN_PROGRESS → RESOLVED → CLOSED, and from RESOLVED back to "
        "OPEN. A ticket is not resolved or closed while one it waits for is open.",
    )
    def post(self, request: Request, team: str, number: int) -> Response:
        self.require_staff()
        values = self.body(TransitionInput)
        values["version"] = self.seen_version(values)
        return self.write(services.transition_ticket, **values)


class AssignView(TicketView):
    @operation(
        "assign_ticket",
        "Make somebody responsible, or nobody",
        tag="tickets",
        takes=AssignInput,
        answers=TicketDetailSerializer,
        refuses=[403, 404],
        versioned=True,
        conflict=TicketConflictSerializer,
        description="For staff; not on a closed ticket. The reminder will reach whoever is responsible then.",
    )
    def post(self, request: Request, team: str, number: int) -> Response:
        self.require_staff()
        values = self.body(AssignInput)
        version = self.seen_version(values)
        with fields_named(membership_id="membership"):
            return self.write(
                services.assign_ticket, membership_id=values["membership"], version=version
            )
