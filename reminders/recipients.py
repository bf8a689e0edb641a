"""Whoever is responsible now. Asked when a reminder fires, and by the page that shows whom it would reach."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from tickets.models import Membership, Ticket
from tickets.states import STAFF, Role


@dataclass(frozen=True, slots=True)
class Recipient:
    """A person a reminder reaches, and why: "ASSIGNEE" or "TEAM_ADMIN"."""

    user_id: int
    name: str
    why: str


def responsible_for(*, team_id: int, tickets: Sequence[Ticket]) -> dict[int, list[Recipient]]:
    """For each ticket of the team, by id, the people responsible for it at this moment. One query.

    The assignee if still staff of this team; without an assignee the team's administrators; active
    accounts only. An assignee who no longer qualifies is not replaced by somebody else: the list is
    empty, and that is reported rather than papered over. Customers are never in it.
    """
    members = (
        Membership.objects.select_related("user")
        .filter(team_id=team_id, role__in=STAFF, user__is_active=True)
        .filter(Q(role=Role.ADMIN) | Q(pk__in={ticket.assignee_id for ticket in tickets}))
        .order_by("id")
    )
    by_id = {member.pk: member for member in members}
    admins = [
        Recipient(member.user_id, member.user.display_name, "TEAM_ADMIN")
        for member in by_id.values()
        if member.role == Role.ADMIN
    ]
    responsible = {}
    for ticket in tickets:
        if ticket.assignee_id is None:
            responsible[ticket.pk] = admins
        elif assignee := by_id.get(ticket.assignee_id):
            responsible[ticket.pk] = [
                Recipient(assignee.user_id, assignee.user.display_name, "ASSIGNEE")
            ]
        else:
            responsible[ticket.pk] = []
    return responsible
