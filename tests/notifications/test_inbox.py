"""The bell: one's own notices, of tickets one may still open."""

from typing import Any

import pytest

from helpdesk.errors import NotFound
from notifications import selectors, services
from notifications.models import ReminderNotification
from tests.cast import Cast
from tests.factories import act, make_due, open_ticket, run
from tickets import services as ticket_services
from tickets.models import Ticket


def remind(cast: Cast, **fields: Any) -> Ticket:
    """The agent is reminded of a new ticket."""
    ticket = act(
        cast,
        ticket_services.assign_ticket,
        open_ticket(cast, **fields),
        membership_id=cast.agent.pk,
    )
    run(make_due(ticket))
    ticket.refresh_from_db()
    return ticket


def test_the_inbox_shows_the_latest_30_newest_first_in_one_query(
    cast: Cast, django_assert_num_queries: Any
) -> None:
    tickets = [remind(cast, title=f"Ticket {number}") for number in range(32)]

    with django_assert_num_queries(1):
        entries = selectors.inbox(user_id=cast.user("agent").pk)

    assert [entry.ticket_title for entry in entries] == [
        ticket.title for ticket in reversed(tickets[2:])
    ]
    assert selectors.unread_count(user_id=cast.user("agent").pk) == 32


def test_nobody_sees_or_reads_anybody_elses(cast: Cast) -> None:
    remind(cast)
    notice = ReminderNotification.objects.get()

    assert selectors.inbox(user_id=cast.user("second_agent").pk) == []
    with pytest.raises(NotFound):
        services.mark_read(user_id=cast.user("second_agent").pk, notice_id=notice.pk)

    notice.refresh_from_db()
    assert notice.read_at is None


def test_reading_one_and_reading_all(cast: Cast) -> None:
    for _ in range(3):
        remind(cast)
    agent = cast.user("agent").pk
    first = ReminderNotification.objects.earliest("id")

    services.mark_read(user_id=agent, notice_id=first.pk)
    first.refresh_from_db()
    read_at = first.read_at
    assert read_at is not None
    assert selectors.unread_count(user_id=agent) == 2

    services.mark_read(user_id=agent, notice_id=first.pk)
    assert services.mark_all_read(user_id=agent) == 2
    first.refresh_from_db()
    assert first.read_at == read_at
    assert selectors.unread_count(user_id=agent) == 0


def test_a_notice_of_a_resolved_ticket_asks_for_nothing_any_more(cast: Cast) -> None:
    ticket = act(cast, ticket_services.start_ticket, remind(cast))

    act(cast, ticket_services.resolve_ticket, ticket, note="Done.")

    agent = cast.user("agent").pk
    assert selectors.unread_count(user_id=agent) == 0
    (entry,) = selectors.inbox(user_id=agent)
    assert (entry.is_unread, entry.read_at) == (False, None)
    assert entry.handled_at is not None


@pytest.mark.parametrize("how", ["removed", "demoted"])
def test_whoever_has_left_the_staff_reads_nothing_of_the_team_any_more(
    cast: Cast, how: str
) -> None:
    remind(cast)
    arguments = {
        "team_id": cast.team.pk,
        "actor_id": cast.user("admin").pk,
        "membership_id": cast.agent.pk,
    }
    if how == "removed":
        ticket_services.remove_member(**arguments)
    else:
        ticket_services.change_role(**arguments, role="CUSTOMER")

    assert selectors.inbox(user_id=cast.user("agent").pk) == []
    assert selectors.unread_count(user_id=cast.user("agent").pk) == 0
