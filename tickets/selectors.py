"""Reading teams, members and tickets. `visible_tickets` is the one place that says who may see which."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from helpdesk.errors import InvalidInput, NotAllowed, NotFound
from tickets.models import Comment, Membership, Team, Ticket, TicketEvent, TicketLink, User
from tickets.states import CUSTOMER_VISIBLE, STAFF, Role, Status


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


def members(*, team_id: int, after: int | None = None, limit: int) -> list[Membership]:
    """The team's members by id, one page of `limit`; `after` is the last id of the page before. One query."""
    found = Membership.objects.select_related("user").filter(team=team_id)
    if after is not None:
        found = found.filter(pk__gt=after)
    return list(found.order_by("pk")[:limit])


def active_user_id(*, username: str) -> int:
    """The id of the active account of this name. Raises `InvalidInput`."""
    found = User.objects.filter(username=username, is_active=True).values_list("pk", flat=True)
    user_id = found.first()
    if user_id is None:
        raise InvalidInput(username=_("There is no active account of this name."))
    return user_id


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
    """Which tickets a list shows. Empty means everything.

    `assignee` is a membership id, "me" or "none"; `creator` a user id or "me"; `search` is looked for in
    titles and descriptions, and as a number. Bounds include their moment.
    """

    statuses: Collection[str] = ()
    priorities: Collection[str] = ()
    assignee: str = ""
    creator: str = ""
    overdue: bool | None = None
    due_after: datetime | None = None
    due_before: datetime | None = None
    updated_since: datetime | None = None
    search: str = ""

    @property
    def is_for_staff(self) -> bool:
        """It tells of what customers do not see: who is responsible, when, and that something happened."""
        return bool(
            self.assignee
            or self.overdue is not None
            or self.due_after
            or self.due_before
            or self.updated_since
        )


def matching_tickets(*, viewer: Viewer, wanted: TicketFilter, now: datetime) -> QuerySet[Ticket]:
    """The visible tickets that match, in no order. Due exactly now is overdue.

    Raises `NotAllowed` for a customer whose filter would tell of what is not for them.
    """
    if wanted.is_for_staff and not viewer.is_staff:
        raise NotAllowed
    match = Q()
    if wanted.statuses:
        match &= Q(status__in=wanted.statuses)
    if wanted.priorities:
        match &= Q(priority__in=wanted.priorities)
    if wanted.assignee:
        match &= _assigned_to(wanted.assignee, viewer)
    if wanted.creator:
        match &= Q(creator=viewer.user.pk if wanted.creator == "me" else int(wanted.creator))
    if wanted.overdue is not None:
        overdue = Q(due_at__isnull=False, due_at__lte=now)
        match &= overdue if wanted.overdue else ~overdue
    if wanted.due_after:
        match &= Q(due_at__gte=wanted.due_after)
    if wanted.due_before:
        match &= Q(due_at__lte=wanted.due_before)
    if wanted.updated_since:
        match &= Q(updated_at__gte=wanted.updated_since)
    if wanted.search:
        match &= _contains(wanted.search)
    return visible_tickets(viewer).filter(match).select_related("assignee__user", "creator")


def _assigned_to(who: str, viewer: Viewer) -> Q:
    if who == "none":
        return Q(assignee__isnull=True)
    if who == "me":
        return Q(assignee=viewer.membership, assignee__isnull=False)
    return Q(assignee=int(who))


def _contains(text: str) -> Q:
    found = Q(title__icontains=text) | Q(description__icontains=text)
    number = text.removeprefix("#")
    if number.isascii() and number.isdecimal() and len(number) < 10:
        found |= Q(number=int(number))
    return found


def ticket_list(*, viewer: Viewer, wanted: TicketFilter, now: datetime) -> QuerySet[Ticket]:
    """The visible tickets that match, last activity first.

    Customers get them by number: the time of the last change would tell of notes and reminders.
    """
    tickets = matching_tickets(viewer=viewer, wanted=wanted, now=now)
    return (
        tickets.order_by("-updated_at", "-id") if viewer.is_staff else tickets.order_by("-number")
    )


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


def conversation(
    *, viewer: Viewer, ticket: Ticket, after: int | None = None, limit: int | None = None
) -> list[Comment]:
    """Replies, and for staff internal notes, oldest first; `after` is the last id of the page before. One query."""
    comments = Comment.objects.filter(ticket=ticket).select_related("author")
    if not viewer.is_staff:
        comments = comments.filter(internal=False)
    if after is not None:
        comments = comments.filter(pk__gt=after)
    return list(comments.order_by("pk")[:limit])


def events(
    *, viewer: Viewer, ticket: Ticket, after: int | None = None, limit: int | None = None
) -> list[TicketEvent]:
    """The history, oldest first; `after` is the last id of the page before. One query.

    Customers see no trace of reminders, notes, assignments or blockers.
    """
    rows = TicketEvent.objects.filter(ticket=ticket)
    if not viewer.is_staff:
        rows = rows.filter(kind__in=CUSTOMER_VISIBLE)
    if after is not None:
        rows = rows.filter(pk__gt=after)
    return list(rows.order_by("version")[:limit])


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
