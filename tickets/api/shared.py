"""What the endpoints of this app share: the team and the ticket of an address, creating once, writing on a version."""

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from hashlib import sha256
from typing import Any

from django.utils.translation import gettext_lazy
from rest_framework.response import Response

from helpdesk.api.views import ApiView, with_etag
from helpdesk.clock import database_now
from helpdesk.errors import InvalidInput, InvalidTransition, NotAllowed, VersionConflict
from reminders.selectors import reminder_panel
from tickets import selectors
from tickets.models import Ticket
from tickets.receipts import AlreadyDone, Request
from tickets.selectors import Viewer
from tickets.serializers import TicketDetailSerializer


class TeamView(ApiView):
    """An endpoint below a team."""

    @cached_property
    def viewer(self) -> Viewer:
        """The person's standing in the team of the address. Raises `NotFound`."""
        return selectors.viewer(user=self.user, slug=self.kwargs["team"])

    @property
    def common(self) -> dict[str, int]:
        """What every service is told: where, and who."""
        return {"team_id": self.viewer.team.pk, "actor_id": self.user.pk}

    def require_staff(self) -> None:
        if not self.viewer.is_staff:
            raise NotAllowed

    def require_admin(self) -> None:
        if not self.viewer.is_admin:
            raise NotAllowed

    def create(
        self,
        service: Callable[..., Any],
        answer: Callable[[Any], Mapping[str, Any]],
        **arguments: Any,
    ) -> Response:
        """Have something created, once for each `Idempotency-Key`; the answer is made where it is created."""
        request = Request(
            user_id=self.user.pk,
            key=self._idempotency_key(),
            fingerprint=self._fingerprint(),
            answer=answer,
        )
        try:
            service(**self.common, **arguments, request=request)
        except AlreadyDone as done:
            return with_etag(
                done.answer,
                status=201,
                **{"Idempotency-Replayed": "true"},
            )
        return with_etag(request.answered, status=201)

    def _idempotency_key(self) -> str | None:
        key = self.request.headers.get("Idempotency-Key")
        if key is not None and not (
            0 < len(key) <= 200 and all("!" <= each <= "~" for each in key)
        ):
            raise InvalidInput(
                **{
                    "Idempotency-Key": gettext_lazy(
                        "1 to 200 printable ASCII characters are needed."
                    )
                }
            )
        return key

    def _fingerprint(self) -> str:
        """Of what is asked for: method, address, body, and the version in a header."""
        asked = [
            self.request.method,
            self.request.path,
            self.request.data,
            self.request.headers.get("If-Match"),
        ]
        return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


class TicketView(TeamView):
    """An endpoint of one ticket."""

    @cached_property
    def ticket(self) -> Ticket:
        """The ticket of the address. Raises `NotFound`."""
        return selectors.ticket_page(viewer=self.viewer, number=self.kwargs["number"])

    @property
    def common(self) -> dict[str, int]:
        return {**super().common, "ticket_id": self.ticket.pk}

    def require_staff(self) -> None:
        """To a customer another's ticket does not exist, and their own is not theirs to change."""
        _ = self.ticket
        super().require_staff()

    def shown(self, ticket: Ticket) -> dict[str, Any]:
        return shown(ticket, self.viewer)

    def fresh(self) -> dict[str, Any]:
        """The ticket as it is now. Raises `NotFound`."""
        return self.shown(selectors.ticket_page(viewer=self.viewer, number=self.kwargs["number"]))

    def write(self, service: Callable[..., Any], **arguments: Any) -> Response:
        """Call a service that changes the ticket; answer with the fresh one."""
        try:
            service(**self.common, **arguments)
        except (VersionConflict, InvalidTransition) as conflict:
            raise self.recoverable(conflict) from conflict
        return with_etag(self.fresh())

    def recoverable(
        self, conflict: VersionConflict | InvalidTransition
    ) -> VersionConflict | InvalidTransition:
        """The conflict with the ticket as it is now: enough to decide again without another request."""
        ticket = self.fresh()
        if "version" in ticket:
            conflict.data = {
                **conflict.data,
                "current_version": ticket["version"],
                "ticket": ticket,
            }
        return conflict


def shown(ticket: Ticket, viewer: Viewer) -> dict[str, Any]:
    """A ticket as the viewer may see it, for staff with its reminder."""
    if viewer.is_staff:
        ticket.reminder = reminder_panel(ticket=ticket, now=database_now())  # type: ignore[attr-defined]
    return dict(TicketDetailSerializer(ticket, context={"viewer": viewer}).data)
