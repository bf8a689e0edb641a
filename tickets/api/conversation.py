"""Comments, history and blockers of a ticket."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from helpdesk.api import pages
from helpdesk.api.pages import PageQuery
from helpdesk.api.schema import operation
from helpdesk.api.views import fields_named
from helpdesk.errors import InvalidTransition, NotAllowed, NotFound, VersionConflict
from tickets import selectors, services
from tickets.api.shared import TicketView
from tickets.messages import history_entry
from tickets.models import Comment, TicketLink
from tickets.serializers import (
    CommentInput,
    CommentPage,
    CommentSerializer,
    EventPage,
    EventSerializer,
    LinkInput,
    LinksSerializer,
    NewCommentSerializer,
    TicketConflictSerializer,
    TicketDetailSerializer,
)


class CommentsView(TicketView):
    @operation(
        "list_comments",
        "Comments of a ticket",
        tag="conversation",
        query=PageQuery,
        answers=CommentPage,
        refuses=[404],
        description="Oldest first. Customers read the public ones.",
    )
    def get(self, request: Request, team: str, number: int) -> Response:
        query = self.query(PageQuery)
        found = selectors.conversation(
            viewer=self.viewer,
            ticket=self.ticket,
            after=pages.before(query.get("cursor")),
            limit=query["limit"] + 1,
        )
        return pages.answer_by_id(request, found, query["limit"], CommentSerializer)

    @operation(
        "add_comment",
        "Reply, or leave a note",
        tag="conversation",
        takes=CommentInput,
        answers=NewCommentSerializer,
        status=201,
        refuses=[403, 404, 409],
        creates=True,
        conflict=TicketConflictSerializer,
        description="Needs no version: a comment overwrites nothing. Not on a closed ticket.",
    )
    def post(self, request: Request, team: str, number: int) -> Response:
        _ = self.ticket
        values = self.body(CommentInput)
        if values["internal"] and not self.viewer.is_staff:
            raise NotAllowed
        add = services.add_internal_note if values["internal"] else services.reply_to_ticket
        try:
            return self.create(add, self._answer, body=values["body"])
        except InvalidTransition as conflict:
            raise self.recoverable(conflict) from conflict

    def _answer(self, comment: Comment) -> dict[str, Any]:
        shown = CommentSerializer(comment).data
        return {**shown, "ticket": self.shown(comment.ticket)}


class EventsView(TicketView):
    @operation(
        "list_events",
        "History of a ticket",
        tag="conversation",
        query=PageQuery,
        answers=EventPage,
        refuses=[404],
        description="Oldest first. Customers see no reminders, notes, assignments and blockers.",
    )
    def get(self, request: Request, team: str, number: int) -> Response:
        query = self.query(PageQuery)
        found = selectors.events(
            viewer=self.viewer,
            ticket=self.ticket,
            after=pages.before(query.get("cursor")),
            limit=query["limit"] + 1,
        )
        entries = [history_entry(event, for_staff=self.viewer.is_staff) for event in found]
        return pages.answer_by_id(request, entries, query["limit"], EventSerializer)


class LinksView(TicketView):
    @operation(
        "list_links",
        "Blockers of a ticket, and what it blocks",
        tag="conversation",
        answers=LinksSerializer,
        refuses=[403, 404],
        description="For staff: they may be other customers' tickets.",
    )
    def get(self, request: Request, team: str, number: int) -> Response:
        self.require_staff()
        found = [
            {
                "direction": direction,
                "number": each.number,
                "title": each.title,
                "status": each.status,
            }
            for direction, linked in (
                ("BLOCKED_BY", selectors.waits_for(ticket=self.ticket)),
                ("BLOCKS", selectors.blocks(ticket=self.ticket)),
            )
            for each in linked
        ]
        return Response(LinksSerializer({"results": found}).data)

    @operation(
        "add_blocker",
        "Let the ticket wait for another",
        tag="conversation",
        takes=LinkInput,
        answers=TicketDetailSerializer,
        status=201,
        refuses=[403, 404],
        versioned=True,
        creates=True,
        conflict=TicketConflictSerializer,
        description="For staff; not once it is resolved. It is not resolved or closed while the other one is open.",
    )
    def post(self, request: Request, team: str, number: int) -> Response:
        self.require_staff()
        values = self.body(LinkInput)
        version = self.seen_version(values)
        try:
            with fields_named(number="blocker"):
                return self.create(
                    services.add_blocker, self._answer, number=values["blocker"], version=version
                )
        except (VersionConflict, InvalidTransition) as conflict:
            raise self.recoverable(conflict) from conflict

    def _answer(self, link: TicketLink) -> dict[str, Any]:
        return self.shown(link.ticket)


class LinkView(TicketView):
    @operation(
        "remove_blocker",
        "Let the ticket no longer wait for another",
        tag="conversation",
        answers=TicketDetailSerializer,
        refuses=[403, 404],
        versioned=True,
        conflict=TicketConflictSerializer,
        description="For staff; not once it is resolved. `{blocker}` is the other ticket's number.",
    )
    def delete(self, request: Request, team: str, number: int, blocker: int) -> Response:
        self.require_staff()
        version = self.seen_version({})
        for each in selectors.waits_for(ticket=self.ticket):
            if each.number == blocker:
                return self.write(services.remove_blocker, link_id=each.link_id, version=version)
        raise NotFound
