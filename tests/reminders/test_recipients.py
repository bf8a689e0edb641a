"""Whoever is responsible when it fires, and nobody else."""

import pytest

from notifications.models import ReminderNotification
from reminders.models import Task
from tests.cast import Cast
from tests.factories import MembershipFactory, UserFactory, act, make_due, open_ticket, run
from tickets import services
from tickets.models import Membership, Ticket, User
from tickets.states import Role


def reminded(ticket: Ticket) -> set[str]:
    return set(
        ReminderNotification.objects.filter(ticket=ticket).values_list("user__username", flat=True)
    )


def assigned(cast: Cast, to: str | None = "agent") -> Ticket:
    ticket = open_ticket(cast)
    if to is None:
        return ticket
    membership: Membership = getattr(cast, to)
    ticket = act(cast, services.assign_ticket, ticket, membership_id=membership.pk)
    return ticket


def test_only_the_new_assignee_after_a_reassignment(cast: Cast) -> None:
    ticket = assigned(cast, "agent")
    ticket = act(cast, services.schedule_reminder, ticket, minutes=1)
    act(cast, services.assign_ticket, ticket, membership_id=cast.second_agent.pk)

    run(make_due(ticket))

    assert reminded(ticket) == {"second_agent"}


def test_the_person_who_set_the_reminder_or_opened_the_ticket_does_not_count(cast: Cast) -> None:
    ticket = act(cast, services.schedule_reminder, assigned(cast), by="second_agent", minutes=1)

    run(make_due(ticket))

    assert reminded(ticket) == {"agent"}


def test_every_admin_of_the_team_when_nobody_is_assigned(cast: Cast) -> None:
    MembershipFactory(team=cast.team, role=Role.ADMIN, user__username="second_admin")
    ticket = assigned(cast, None)

    run(make_due(ticket))

    assert reminded(ticket) == {"admin", "second_admin"}
    assert set(ReminderNotification.objects.values_list("why", flat=True)) == {"TEAM_ADMIN"}
    assert Task.objects.get(ticket=ticket).result_summary == "Sent to 2 people."


def test_an_assigned_admin_is_told_once_and_the_others_are_not(cast: Cast) -> None:
    MembershipFactory(team=cast.team, role=Role.ADMIN, user__username="second_admin")
    ticket = assigned(cast, "admin")

    run(make_due(ticket))

    assert reminded(ticket) == {"admin"}


def test_a_demoted_assignee_is_not_told_the_admins_are(cast: Cast) -> None:
    ticket = assigned(cast)
    task = make_due(ticket)
    services.change_role(
        team_id=cast.team.pk,
        actor_id=cast.user("admin").pk,
        membership_id=cast.agent.pk,
        role=Role.CUSTOMER,
    )

    run(task)

    assert reminded(ticket) == {"admin"}


def test_a_removed_assignee_is_not_told_the_admins_are(cast: Cast) -> None:
    ticket = assigned(cast)
    task = make_due(ticket)
    services.remove_member(
        team_id=cast.team.pk, actor_id=cast.user("admin").pk, membership_id=cast.agent.pk
    )

    run(task)

    assert reminded(ticket) == {"admin"}


def test_a_deactivated_assignee_is_not_told_the_admins_are(cast: Cast) -> None:
    ticket = assigned(cast)
    task = make_due(ticket)
    root = UserFactory(is_superuser=True)
    services.deactivate_account(user_id=cast.user("agent").pk, actor_id=root.pk)

    run(task)

    assert reminded(ticket) == {"admin"}


def demote_by_hand(agent: Membership) -> None:
    Membership.objects.filter(pk=agent.pk).update(role=Role.CUSTOMER)


def block_by_hand(agent: Membership) -> None:
    User.objects.filter(pk=agent.user_id).update(is_active=False)


@pytest.mark.parametrize("change", [demote_by_hand, block_by_hand])
def test_with_nobody_qualified_it_completes_with_0_recipients(cast: Cast, change: object) -> None:
    """Changed behind the services' back, so that the ticket still names somebody who may not be told."""
    ticket = assigned(cast)
    task = make_due(ticket)
    change(cast.agent)  # type: ignore[operator]

    run(task)

    assert reminded(ticket) == set()
    task.refresh_from_db()
    assert task.status == "COMPLETED"
    assert task.result_summary.startswith("Sent to 0 recipients")
    assert (task.evidence["planned"], task.evidence["created"]) == ([], 0)
    assert Ticket.objects.get(pk=ticket.pk).version == ticket.version + 1


def test_an_inactive_admin_is_not_told(cast: Cast) -> None:
    MembershipFactory(team=cast.team, role=Role.ADMIN, user__username="away", user__is_active=False)
    ticket = assigned(cast, None)

    run(make_due(ticket))

    assert reminded(ticket) == {"admin"}


def test_a_notice_that_is_already_there_is_kept_and_not_repeated(cast: Cast) -> None:
    ticket = assigned(cast)
    task = make_due(ticket)
    early = ReminderNotification.objects.create(
        ticket=ticket,
        user=cast.user("agent"),
        reminder_revision=ticket.reminder_revision,
        why="ASSIGNEE",
        due_at=ticket.due_at,
        late_ms=0,
        created_at=ticket.created_at,
    )

    run(task)

    assert list(ReminderNotification.objects.all()) == [early]
    task.refresh_from_db()
    assert task.evidence["notifications"] == [early.pk]
    assert (task.evidence["planned"], task.evidence["created"]) == ([cast.user("agent").pk], 0)
