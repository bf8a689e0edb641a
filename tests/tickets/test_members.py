"""Joining, changing role and leaving a team, by whatever door."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from helpdesk.constraints import violates
from helpdesk.errors import InvalidInput, InvalidTransition, NotAllowed, NotFound
from tests.cast import Cast
from tests.factories import UserFactory, act, open_ticket
from tickets import services
from tickets.models import Membership, MembershipChange, Ticket, TicketEvent, User
from tickets.states import Role


def demote(cast: Cast) -> None:
    services.change_role(
        team_id=cast.team.pk,
        actor_id=cast.user("admin").pk,
        membership_id=cast.agent.pk,
        role=Role.CUSTOMER,
    )


def remove(cast: Cast) -> None:
    services.remove_member(
        team_id=cast.team.pk, actor_id=cast.user("admin").pk, membership_id=cast.agent.pk
    )


def deactivate(cast: Cast) -> None:
    services.deactivate_account(
        user_id=cast.user("agent").pk, actor_id=UserFactory(is_superuser=True).pk
    )


@pytest.mark.parametrize(
    ("leave", "because"),
    [(demote, "demoted"), (remove, "removed"), (deactivate, "deactivated")],
)
def test_whoever_leaves_the_staff_loses_their_tickets_and_each_says_so(
    cast: Cast, leave: Any, because: str
) -> None:
    mine = [
        act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)
        for _ in range(3)
    ]
    other = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.second_agent.pk)

    leave(cast)

    for ticket in mine:
        ticket.refresh_from_db()
        assert (ticket.assignee, ticket.version) == (None, 2)
        event = TicketEvent.objects.get(ticket=ticket, version=2)
        assert (event.kind, event.data["because"]) == ("UNASSIGNED", because)
        assert event.data["from"]["user"] == cast.user("agent").pk
    other.refresh_from_db()
    assert (other.assignee, other.version) == (cast.second_agent, 1)
    assert not Membership.objects.filter(
        user=cast.user("agent"), role__in=[Role.ADMIN, Role.AGENT]
    ).exists()


def test_leaving_costs_the_same_number_of_queries_however_many_tickets(
    cast: Cast, django_assert_num_queries: Any
) -> None:
    for _ in range(12):
        act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)

    with django_assert_num_queries(12):
        remove(cast)


def test_an_agent_who_becomes_admin_keeps_their_tickets(cast: Cast) -> None:
    ticket = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)

    services.change_role(
        team_id=cast.team.pk,
        actor_id=cast.user("admin").pk,
        membership_id=cast.agent.pk,
        role=Role.ADMIN,
    )

    ticket.refresh_from_db()
    assert (ticket.assignee, ticket.version) == (cast.agent, 1)


@pytest.mark.parametrize("role", [Role.AGENT, Role.CUSTOMER])
def test_the_last_admin_cannot_be_demoted(cast: Cast, role: Role) -> None:
    with pytest.raises(InvalidTransition):
        services.change_role(
            team_id=cast.team.pk,
            actor_id=cast.user("admin").pk,
            membership_id=cast.admin.pk,
            role=role,
        )


def test_the_last_admin_cannot_be_removed_or_deactivated(cast: Cast) -> None:
    with pytest.raises(InvalidTransition):
        services.remove_member(
            team_id=cast.team.pk, actor_id=cast.user("admin").pk, membership_id=cast.admin.pk
        )
    with pytest.raises(InvalidTransition):
        services.deactivate_account(
            user_id=cast.user("admin").pk, actor_id=UserFactory(is_superuser=True).pk
        )

    assert User.objects.get(username="admin").is_active
    assert Membership.objects.filter(pk=cast.admin.pk).exists()


def test_an_inactive_admin_does_not_count_as_the_one_that_is_kept(cast: Cast) -> None:
    services.add_member(
        team_id=cast.team.pk,
        actor_id=cast.user("admin").pk,
        user_id=(away := UserFactory()).pk,
        role=Role.ADMIN,
    )
    User.objects.filter(pk=away.pk).update(is_active=False)

    with pytest.raises(InvalidTransition):
        services.remove_member(
            team_id=cast.team.pk, actor_id=cast.user("admin").pk, membership_id=cast.admin.pk
        )


def test_deactivation_leaves_every_team(cast: Cast) -> None:
    services.add_member(
        team_id=cast.other_team.pk,
        actor_id=cast.user("stranger").pk,
        user_id=cast.user("agent").pk,
        role=Role.AGENT,
    )

    deactivate(cast)

    assert not Membership.objects.filter(user=cast.user("agent")).exists()
    assert not User.objects.get(username="agent").is_active


def test_only_site_administrators_deactivate_and_nobody_themselves(cast: Cast) -> None:
    with pytest.raises(NotAllowed):
        services.deactivate_account(user_id=cast.user("agent").pk, actor_id=cast.user("admin").pk)
    root = UserFactory(is_superuser=True)
    with pytest.raises(InvalidTransition):
        services.deactivate_account(user_id=root.pk, actor_id=root.pk)
    with pytest.raises(NotFound):
        services.deactivate_account(user_id=root.pk + 1000, actor_id=root.pk)


def test_joining_needs_an_active_account_and_happens_once(cast: Cast) -> None:
    def add(user: User) -> Membership:
        return services.add_member(
            team_id=cast.team.pk,
            actor_id=cast.user("admin").pk,
            user_id=user.pk,
            role=Role.AGENT,
        )

    newcomer = UserFactory()
    assert add(newcomer).role == Role.AGENT
    with pytest.raises(InvalidInput):
        add(newcomer)
    with pytest.raises(InvalidInput):
        add(UserFactory(is_active=False))


@pytest.mark.parametrize(
    ("who", "error"), [("agent", NotAllowed), ("customer", NotAllowed), ("stranger", NotFound)]
)
def test_only_the_teams_admins_change_members(cast: Cast, who: str, error: type[Exception]) -> None:
    actor_id = cast.user(who).pk
    target = cast.second_agent.pk
    with pytest.raises(error):
        services.change_role(
            team_id=cast.team.pk, actor_id=actor_id, membership_id=target, role=Role.ADMIN
        )
    with pytest.raises(error):
        services.remove_member(team_id=cast.team.pk, actor_id=actor_id, membership_id=target)
    with pytest.raises(error):
        services.add_member(
            team_id=cast.team.pk, actor_id=actor_id, user_id=UserFactory().pk, role=Role.AGENT
        )
    cast.second_agent.refresh_from_db()
    assert cast.second_agent.role == Role.AGENT


def test_a_member_of_another_team_does_not_exist(cast: Cast) -> None:
    with pytest.raises(NotFound):
        services.remove_member(
            team_id=cast.team.pk,
            actor_id=cast.user("admin").pk,
            membership_id=cast.stranger.pk,
        )


def test_who_had_which_role_when_outlives_the_membership(cast: Cast) -> None:
    admin = cast.user("admin")
    person = UserFactory()
    member = services.add_member(
        team_id=cast.team.pk, actor_id=admin.pk, user_id=person.pk, role=Role.CUSTOMER
    )
    target = {"team_id": cast.team.pk, "actor_id": admin.pk, "membership_id": member.pk}
    services.change_role(**target, role=Role.AGENT)
    services.change_role(**target, role=Role.AGENT)
    services.remove_member(**target)
    root = UserFactory(is_superuser=True)
    services.deactivate_account(user_id=cast.user("agent").pk, actor_id=root.pk)
    services.create_team(name="New", slug="new", admin_id=person.pk)

    changes = MembershipChange.objects.filter(user__in=[person, cast.user("agent")])
    assert list(changes.values_list("user", "team__slug", "role", "actor")[1:]) == [
        (person.pk, "support", "CUSTOMER", admin.pk),
        (person.pk, "support", "AGENT", admin.pk),
        (person.pk, "support", None, admin.pk),
        (cast.user("agent").pk, "support", None, root.pk),
        (person.pk, "new", "ADMIN", None),
    ]


@pytest.mark.django_db(transaction=True)
def test_the_database_refuses_an_assignee_of_another_team() -> None:
    from tests.cast import make_cast

    cast = make_cast()
    ticket = open_ticket(cast)

    with pytest.raises(IntegrityError) as refusal, transaction.atomic():
        Ticket.objects.filter(pk=ticket.pk).update(assignee=cast.stranger)

    assert violates(refusal.value, "ticket_assignee_in_team")
