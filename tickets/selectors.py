"""Reading teams, members and tickets. `visible_tickets` is the one place that says who may see which."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from helpdesk.errors import NotFound
from tickets.models import Comment, Membership, Team, Ticket, TicketEvent, TicketLink, User
from tickets.states import ACTIVE, CUSTOMER_VISIBLE, STAFF, Role, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """A person looking at one team. For showing only; services look again under the lock."""

    user: User
    team: Team
    role: Role
    membership: Membership | None

    @property
    def is_staff(self) -> bool:
        return self.role in STAFF

    @property
    def is_admin(self) -> bool:
        return self.role == Role.ADMIN


def viewer(*, user: User, slug: str) -> Viewer:
    """The person's standing in the team. Raises `NotFound` unless they are a member, or superuser. One or two queries."""
    membership = (
        Membership.objects.select_related("team").filter(team__slug=slug, user=user).first()
    )
    if user.is_superuser:
        team = membership.team if membership else Team.objects.filter(slug=slug).first()
        if team is None:
            raise NotFound
        return Viewer(user=user, team=team, role=Role.ADMIN, membership=membership)
    if membership is None:
        raise NotFound
    return Viewer(
        user=user, team=membership.team, role=Role(membership.role), membership=membership
    )


def memberships(*, user_id: int) -> list[Membership]:
    """The person's memberships with their teams, by team name."""
    return list(
        Membership.objects.select_related("team").filter(user=user_id).order_by("team__name")
    )


def assignable(*, team_id: int) -> list[Membership]:
    """The members a ticket can be assigned to, by name."""
    return list(
        Membership.objects.select_related("user")
        .filter(team=team_id, role__in=STAFF, user__is_active=True)
        .order_by("user__first_name", "user__last_name", "user__username")
    )


def visible_tickets(viewer: Viewer) -> QuerySet[Ticket]:
    """The team's tickets for its staff, their own for customers."""
    tickets = Ticket.objects.filter(team=viewer.team)
    return tickets if viewer.is_staff else tickets.filter(creator=viewer.user)


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketFilter:
    """What the list shows. Empty means everything; `assignee` is a membership id, "me" or "none"."""

    status: str = ""
    assignee: str = ""
    overdue: bool = False


def ticket_list(*, viewer: Viewer, wanted: TicketFilter, now: datetime) -> QuerySet[Ticket]:
    """The visible tickets that match, last activity first. Due exactly now is overdue.

    Customers filter by status alone: who is responsible and when is for staff.
    """
    match = Q()
    if wanted.status == "active":
        match &= Q(status__in=ACTIVE)
    elif wanted.status:
        match &= Q(status=wanted.status)
    tickets = visible_tickets(viewer).filter(match).select_related("assignee__user", "creator")
    if not viewer.is_staff:
        # By number: the time of the last change would tell of notes and reminders.
        return tickets.order_by("-number")
    if wanted.assignee == "none":
        tickets = tickets.filter(assignee__isnull=True)
    elif wanted.assignee == "me":
        tickets = tickets.filter(assignee=viewer.membership, assignee__isnull=False)
    elif wanted.assignee:
        tickets = tickets.filter(assignee=int(wanted.assignee))
    if wanted.overdue:
        tickets = tickets.filter(due_at__lte=now)
    return tickets.order_by("-updated_at", "-id")


def ticket_page(*, viewer: Viewer, number: int) -> Ticket:
    """One visible ticket by its number in the team. Raises `NotFound`."""
    ticket = (
        visible_tickets(viewer)
        .select_related("team", "assignee__user", "creator", "reminder_set_by")
        .filter(number=number)
        .first()
    )
    if ticket is None:
        raise NotFound
    return ticket


def conversation(*, viewer: Viewer, ticket: Ticket) -> Sequence[Comment]:
    """Replies, and for staff internal notes, oldest first."""
    comments = Comment.objects.filter(ticket=ticket).select_related("author")
    return list(comments if viewer.is_staff else comments.filter(internal=False))


def events(*, viewer: Viewer, ticket: Ticket) -> Sequence[TicketEvent]:
    """The history, oldest first. Customers see no trace of reminders, notes, assignments or blockers."""
    rows = TicketEvent.objects.filter(ticket=ticket).order_by("version")
    return list(rows if viewer.is_staff else rows.filter(kind__in=CUSTOMER_VISIBLE))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedTicket:
    """The ticket at the other end of a link. For staff: it may be another customer's."""

    link_id: int
    number: int
    title: str
    status: Status


def waits_for(*, ticket: Ticket) -> Sequence[LinkedTicket]:
    """The blockers of the ticket, by number. One query."""
    links = TicketLink.objects.filter(ticket=ticket).select_related("blocker")
    return [_linked(link, link.blocker) for link in links.order_by("blocker__number")]


def blocks(*, ticket: Ticket) -> Sequence[LinkedTicket]:
    """The tickets that wait for this one, by number. One query."""
    links = TicketLink.objects.filter(blocker=ticket).select_related("ticket")
    return [_linked(link, link.ticket) for link in links.order_by("ticket__number")]


def _linked(link: TicketLink, other: Ticket) -> LinkedTicket:
    return LinkedTicket(
        link_id=link.pk, number=other.number, title=other.title, status=Status(other.status)
    )
