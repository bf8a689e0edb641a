"""The endpoints of the bell: always one's own."""

from datetime import datetime

from rest_framework.request import Request
from rest_framework.response import Response

from helpdesk.api import pages
from helpdesk.api.schema import operation
from helpdesk.api.views import ApiView
from helpdesk.errors import NotFound
from notifications import selectors, services
from notifications.selectors import INBOX_SIZE
from notifications.serializers import (
    NotificationPage,
    NotificationQuery,
    NotificationSerializer,
    ReadAllSerializer,
)


class NotificationsView(ApiView):
    @operation(
        "list_notifications",
        "Your notifications",
        tag="notifications",
        query=NotificationQuery,
        answers=NotificationPage,
        description="Newest first, 30 a page. Those of tickets that you may no longer open are left out.",
    )
    def get(self, request: Request) -> Response:
        query = self.query(NotificationQuery)
        found = selectors.inbox(
            user_id=self.user.pk, after=_position(query.get("cursor")), limit=INBOX_SIZE + 1
        )
        cursor = None
        if len(found) > INBOX_SIZE:
            last = found[INBOX_SIZE - 1]
            cursor = pages.encode(last.created_at.isoformat(), last.id)
        return Response(
            {
                "next": pages.next_address(request, cursor),
                "results": NotificationSerializer(found[:INBOX_SIZE], many=True).data,
            }
        )


def _position(cursor: str | None) -> tuple[datetime, int] | None:
    values = pages.decode(cursor, str, int)
    return (pages.moment(values[0]), values[1]) if values else None


class ReadView(ApiView):
    @operation(
        "read_notification",
        "Mark one as read",
        tag="notifications",
        answers=NotificationSerializer,
        refuses=[404, 429],
        description="Again is fine.",
    )
    def post(self, request: Request, notice_id: int) -> Response:
        services.mark_read(user_id=self.user.pk, notice_id=notice_id)
        entry = selectors.inbox_entry(user_id=self.user.pk, notice_id=notice_id)
        if entry is None:
            raise NotFound
        return Response(NotificationSerializer(entry).data)


class ReadAllView(ApiView):
    @operation(
        "read_all_notifications",
        "Mark all as read",
        tag="notifications",
        answers=ReadAllSerializer,
        refuses=[429],
    )
    def post(self, request: Request) -> Response:
        read = services.mark_all_read(user_id=self.user.pk)
        return Response(ReadAllSerializer({"read": read}).data)
