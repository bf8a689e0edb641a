"""Teams and who is in them.

Leaving a team's staff, by whatever door (demoted, removed, account deactivated), takes one path: under
the team's lock the person's tickets become unassigned and each of them records it. So a reminder
that fires a moment later finds nobody it must not tell.
"""

from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from helpdesk.clock import database_now
from helpdesk.errors import InvalidInput, InvalidTransition, NotFound
from tickets import receipts
from tickets.history import record_changes
from tickets.locks import (
    Actor,
    actor_under_lock,
    locked_team,
    locked_teams,
    locked_user,
    site_admin,
)
from tickets.models import Membership, MembershipChange, Team, Ticket, User
from tickets.receipts import Request
from tickets.services.assignment import person
from tickets.services.checks import clean_choice, clean_text
from tickets.states import STAFF, EventKind, Role


def create_team(*, name: str, slug: str, admin_id: int) -> Team:
    """A new team with its first administrator. For set-up code and Django admin: no team, no lock yet."""
    name = clean_text("name", name, max_length=100)
    with transaction.atomic(durable=True):
        team = Team.objects.create(name=name, slug=slug)
        membership = Membership.objects.create(team=team, user_id=admin_id, role=Role.ADMIN)
        _record(membership, Role.ADMIN, None, database_now())
    return team


def add_member(
    *, team_id: int, actor_id: int, user_id: int, role: str, request: Request | None = None
) -> Membership:
    """Put a person with an active account into the team. Team administrators only."""
    role = clean_choice("role", role, Role.values)
    with locked_team(team_id) as team:
        actor = actor_under_lock(team, actor_id)
        actor.require_admin()
        receipts.claim(request)
        if not locked_user(user_id).is_active:
            raise InvalidInput(user=_("There is no active account of this name."))
        membership, created = Membership.objects.get_or_create(
            team=team, user_id=user_id, defaults={"role": role}
        )
        if not created:
            raise InvalidInput(user=_("This person is already in the team."))
        now = database_now()
        _record(membership, Role(role), actor, now)
        receipts.keep(request, membership, now=now)
    return membership


def change_role(*, team_id: int, actor_id: int, membership_id: int, role: str) -> Membership:
    """Give a member another role. Team administrators only; the team keeps at least one of them.

    Who becomes a customer loses the tickets assigned to them.
    """
    role = Role(clean_choice("role", role, Role.values))
    with locked_team(team_id) as team:
        actor = actor_under_lock(team, actor_id)
        actor.require_admin()
        membership = _member(team, membership_id)
        if membership.role == role:
            return membership
        if role != Role.ADMIN:
            _require_another_admin(membership)
        membership.role = role
        membership.save(update_fields=["role"])
        now = database_now()
        _record(membership, role, actor, now)
        if role not in STAFF:
            _unassign(membership, actor, now, because="demoted")
    return membership


def remove_member(*, team_id: int, actor_id: int, membership_id: int) -> None:
    """Take a member out of the team. Team administrators only; the team keeps at least one of them."""
    with locked_team(team_id) as team:
        actor = actor_under_lock(team, actor_id)
        actor.require_admin()
        _remove(_member(team, membership_id), actor, because="removed")


def deactivate_account(*, user_id: int, actor_id: int) -> User:
    """Close an account: it leaves each of its teams as a removed member does, in one transaction.

    Site administrators only. Refused while the person is the only administrator of a team.
    """
    # Read before the locks; a team joined in between fails the second look and nothing is changed.
    team_ids = list(
        Membership.objects.filter(user_id=user_id).order_by("team").values_list("team", flat=True)
    )
    with locked_teams(team_ids):
        actor = site_admin(actor_id)
        user = locked_user(user_id)
        if user.pk == actor.user_id:
            raise InvalidTransition(_("You cannot deactivate your own account."))
        memberships = list(Membership.objects.select_related("team", "user").filter(user=user))
        if {membership.team_id for membership in memberships} - set(team_ids):
            raise InvalidTransition(_("This person has just joined another team. Try again."))
        for membership in memberships:
            _remove(membership, actor, because="deactivated")
        user.is_active = False
        user.save(update_fields=["is_active"])
    return user


def activate_account(*, user_id: int, actor_id: int) -> User:
    """Open a deactivated account again. It is in no team until somebody adds it. Site administrators only."""
    with locked_teams([]):
        site_admin(actor_id)
        user = locked_user(user_id)
        user.is_active = True
        user.save(update_fields=["is_active"])
    return user


def _member(team: Team, membership_id: int) -> Membership:
    membership = (
        Membership.objects.select_related("user").filter(pk=membership_id, team=team).first()
    )
    if membership is None:
        raise NotFound
    return membership


def _require_another_admin(membership: Membership) -> None:
    if membership.role != Role.ADMIN:
        return
    others = Membership.objects.filter(
        team_id=membership.team_id, role=Role.ADMIN, user__is_active=True
    ).exclude(pk=membership.pk)
    if not others.exists():
        raise InvalidTransition(_("A team keeps at least one administrator."))


def _remove(membership: Membership, actor: Actor, *, because: str) -> None:
    _require_another_admin(membership)
    now = database_now()
    _record(membership, None, actor, now)
    _unassign(membership, actor, now, because=because)
    membership.delete()


def _record(membership: Membership, role: Role | None, actor: Actor | None, now: datetime) -> None:
    MembershipChange.objects.create(
        team_id=membership.team_id,
        user_id=membership.user_id,
        role=role,
        actor_id=actor.user_id if actor else None,
        at=now,
    )


def _unassign(membership: Membership, actor: Actor, now: datetime, *, because: str) -> None:
    """Take every ticket from the member and say so on each, set-wise: somebody may have thousands."""
    tickets = list(Ticket.objects.filter(team_id=membership.team_id, assignee=membership))
    before = person(membership)
    record_changes(
        tickets=tickets,
        kind=EventKind.UNASSIGNED,
        actor=actor,
        now=now,
        changed={"assignee": None},
        data={ticket.pk: {"from": before, "to": None, "because": because} for ticket in tickets},
    )
