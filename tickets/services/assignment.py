"""Who is responsible for a ticket. The reminder follows without being told: it asks when it fires."""

from django.utils.translation import gettext_lazy as _

from helpdesk.clock import database_now
from helpdesk.errors import InvalidInput
from tickets.history import record_change
from tickets.locks import actor_under_lock, locked_team
from tickets.models import Membership, Ticket
from tickets.services.checks import require_not_closed, require_version, ticket_under_lock
from tickets.states import STAFF, EventKind


def assign_ticket(
    *, team_id: int, ticket_id: int, actor_id: int, version: int, membership_id: int | None
) -> Ticket:
    """Make a member responsible, or nobody (`membership_id` None). Staff only; not on a closed ticket.

    The member must be staff of this team with an active account, else `InvalidInput`.
    """
    with locked_team(team_id) as team:
        actor = actor_under_lock(team, actor_id)
        ticket = ticket_under_lock(team, ticket_id, actor)
        actor.require_staff()
        require_not_closed(ticket)
        require_version(ticket, version)
        before = ticket.assignee
        assignee = None
        if membership_id is not None:
            assignee = (
                Membership.objects.select_related("user")
                .filter(pk=membership_id, team=team, role__in=STAFF, user__is_active=True)
                .first()
            )
            if assignee is None:
                raise InvalidInput(
                    membership_id=_("Tickets are assigned to active staff of the team.")
                )
        if before == assignee:
            return ticket
        ticket.assignee = assignee
        record_change(
            ticket=ticket,
            kind=EventKind.ASSIGNED if assignee else EventKind.UNASSIGNED,
            actor=actor,
            now=database_now(),
            changed=["assignee"],
            data={"from": person(before), "to": person(assignee)},
        )
    return ticket


def person(membership: Membership | None) -> dict[str, int | str] | None:
    """What an event keeps of a member: ids to look up, and the name as it was."""
    if membership is None:
        return None
    return {
        "membership": membership.pk,
        "user": membership.user_id,
        "name": membership.user.display_name,
    }
