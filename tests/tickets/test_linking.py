"""Blockers: which ticket may wait for which, and what waiting means."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.translation import override

from helpdesk.clock import database_now
from helpdesk.errors import InvalidInput, InvalidTransition, NotAllowed, NotFound, VersionConflict
from reminders.models import Task
from tests.cast import Cast
from tests.factories import UserFactory, act, open_ticket
from tests.tickets.test_lifecycle import ticket_that_is
from tickets import selectors, services
from tickets.messages import history_entry
from tickets.models import Ticket, TicketEvent, TicketLink
from tickets.selectors import LinkedTicket
from tickets.states import ACTIVE, Status

FINISHED = sorted(set(Status) - ACTIVE)


def link(cast: Cast, ticket: Ticket, blocker: Ticket) -> Ticket:
    """Let the ticket wait, as it is now."""
    return act(cast, services.add_blocker, Ticket.objects.get(pk=ticket.pk), number=blocker.number)


def move(cast: Cast, ticket: Ticket, *steps: Status) -> Ticket:
    ticket = Ticket.objects.get(pk=ticket.pk)
    for to in steps:
        ticket = act(cast, services.transition_ticket, ticket, to=to, note="Because.")
    return ticket


def rows() -> tuple[Any, ...]:
    """Everything a refusal leaves as it was."""
    return tuple(
        list(model._default_manager.order_by("pk").values())
        for model in (Ticket, TicketEvent, TicketLink, Task)
    )


def refused(
    error: type[Exception], call: Callable[[], object], *, field: str = "", says: str | None = None
) -> None:
    before = rows()
    with pytest.raises(error, match=says) as refusal:
        call()
    if field:
        assert set(refusal.value.data["errors"]) == {field}  # type: ignore[attr-defined]
    assert rows() == before


def make_link(cast: Cast, ticket: Ticket, blocker: Ticket, **fields: Any) -> TicketLink:
    """A row past the service, for what the database says."""
    values = {"team": cast.team, "created_by": cast.user("agent"), "created_at": database_now()}
    return TicketLink.objects.create(ticket=ticket, blocker=blocker, **(values | fields))


def elsewhere(cast: Cast) -> Ticket:
    return services.create_ticket(
        team_id=cast.other_team.pk,
        actor_id=cast.user("stranger").pk,
        title="Elsewhere",
        description="Another team's.",
    )


# --- Adding -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", sorted(ACTIVE))
@pytest.mark.parametrize("other", sorted(ACTIVE))
def test_an_active_ticket_can_wait_for_another_active_one(
    cast: Cast, status: Status, other: Status
) -> None:
    blocker = ticket_that_is(cast, other, by="second_customer", title="Cable")
    ticket = ticket_that_is(cast, status)
    tasks = list(Task.objects.order_by("pk").values())

    changed = act(cast, services.add_blocker, ticket, number=blocker.number)

    row = TicketLink.objects.get()
    assert (row.team, row.ticket, row.blocker) == (cast.team, ticket, blocker)
    assert row.created_by == cast.user("agent")
    fresh = Ticket.objects.get(pk=ticket.pk)
    assert (changed.version, fresh.version) == (ticket.version + 1, ticket.version + 1)
    assert (fresh.status, fresh.due_at, fresh.reminder_revision) == (
        status,
        ticket.due_at,
        ticket.reminder_revision,
    )
    event = TicketEvent.objects.get(ticket=ticket, version=fresh.version)
    assert (event.kind, event.actor, event.reminder_revision) == (
        "BLOCKED",
        cast.user("agent"),
        ticket.reminder_revision,
    )
    assert event.data == {
        "link": row.pk,
        "blocker": {"ticket": blocker.pk, "number": blocker.number, "title": "Cable"},
    }
    assert row.created_at == event.created_at == fresh.updated_at
    assert list(Task.objects.order_by("pk").values()) == tasks


def test_the_blocker_itself_does_not_change(cast: Cast) -> None:
    blocker = open_ticket(cast)
    before = Ticket.objects.filter(pk=blocker.pk).values().get()

    link(cast, open_ticket(cast), blocker)

    assert Ticket.objects.filter(pk=blocker.pk).values().get() == before
    assert TicketEvent.objects.filter(ticket=blocker).count() == 1


def test_a_ticket_can_wait_for_several_and_several_for_one(cast: Cast) -> None:
    first, second, third = (open_ticket(cast) for _ in range(3))
    link(cast, first, second)
    link(cast, first, third)
    link(cast, second, third)

    assert list(TicketLink.objects.values_list("ticket", "blocker")) == [
        (first.pk, second.pk),
        (first.pk, third.pk),
        (second.pk, third.pk),
    ]


@pytest.mark.parametrize("number", ["1", None, True, 1.0])
def test_the_number_of_a_blocker_is_a_whole_number(cast: Cast, number: Any) -> None:
    open_ticket(cast)
    ticket = open_ticket(cast)

    refused(
        InvalidInput,
        lambda: act(cast, services.add_blocker, ticket, number=number),
        field="number",
    )


@pytest.mark.parametrize("number", [0, -1, 2, 10**30])
def test_a_blocker_exists_in_the_same_team(cast: Cast, number: int) -> None:
    """There is a ticket #2, but not in this team."""
    elsewhere(cast), elsewhere(cast)
    ticket = open_ticket(cast)

    refused(
        InvalidInput,
        lambda: act(cast, services.add_blocker, ticket, number=number),
        field="number",
        says=f"There is no ticket #{number} in this team",
    )


def test_a_ticket_does_not_wait_for_itself(cast: Cast) -> None:
    ticket = open_ticket(cast)

    refused(
        InvalidInput,
        lambda: link(cast, ticket, ticket),
        field="number",
        says="A ticket cannot wait for itself",
    )


@pytest.mark.parametrize("status", FINISHED)
def test_a_finished_ticket_is_nothing_to_wait_for(cast: Cast, status: Status) -> None:
    blocker, ticket = ticket_that_is(cast, status), open_ticket(cast)

    refused(
        InvalidInput,
        lambda: link(cast, ticket, blocker),
        field="number",
        says="there is nothing left to wait for",
    )


@pytest.mark.parametrize("resolved", [False, True])
def test_a_blocker_is_added_once(cast: Cast, resolved: bool) -> None:
    blocker, ticket = open_ticket(cast), open_ticket(cast)
    link(cast, ticket, blocker)
    if resolved:
        move(cast, blocker, Status.IN_PROGRESS, Status.RESOLVED)

    refused(
        InvalidInput,
        lambda: link(cast, ticket, blocker),
        field="number",
        says="This ticket already waits for #1",
    )


@pytest.mark.parametrize("through", [0, 1, 5])
def test_tickets_do_not_wait_for_each_other_in_a_circle(cast: Cast, through: int) -> None:
    first, *others = (open_ticket(cast) for _ in range(through + 2))
    chain = [first, *others]
    for ticket, blocker in zip(chain, others, strict=False):
        link(cast, ticket, blocker)

    refused(
        InvalidInput,
        lambda: link(cast, chain[-1], first),
        field="number",
        says="#1 itself waits for this ticket, directly or through others",
    )


def test_a_circle_is_seen_through_a_resolved_ticket_too(cast: Cast) -> None:
    """It may be reopened, and then all of them would wait for ever."""
    first, second, third = (open_ticket(cast) for _ in range(3))
    link(cast, first, second)
    link(cast, second, third)
    move(cast, third, Status.IN_PROGRESS, Status.RESOLVED)
    move(cast, second, Status.IN_PROGRESS, Status.RESOLVED)
    move(cast, third, Status.OPEN)

    refused(InvalidInput, lambda: link(cast, third, first), field="number")


def test_two_ways_to_the_same_blocker_are_no_circle(cast: Cast) -> None:
    top, left, right, bottom = (open_ticket(cast) for _ in range(4))
    for ticket, blocker in ((top, left), (top, right), (left, bottom), (right, bottom)):
        link(cast, ticket, blocker)

    assert link(cast, top, bottom).version == 3
    assert TicketLink.objects.count() == 5


def test_the_search_for_a_circle_ends_even_among_rows_that_go_round(cast: Cast) -> None:
    first, second, ticket = (open_ticket(cast) for _ in range(3))
    make_link(cast, first, second)
    make_link(cast, second, first)

    link(cast, ticket, first)

    assert TicketLink.objects.filter(ticket=ticket, blocker=first).exists()


# --- Removing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("resolved", [False, True])
def test_a_blocker_can_be_removed_whatever_its_status(cast: Cast, resolved: bool) -> None:
    blocker, other = open_ticket(cast, title="Cable"), open_ticket(cast)
    ticket = link(cast, link(cast, open_ticket(cast), other), blocker)
    if resolved:
        move(cast, blocker, Status.IN_PROGRESS, Status.RESOLVED)
    row = TicketLink.objects.get(blocker=blocker)
    before = Ticket.objects.filter(pk=blocker.pk).values().get()

    changed = act(cast, services.remove_blocker, ticket, by="second_agent", link_id=row.pk)

    assert TicketLink.objects.get().blocker == other
    fresh = Ticket.objects.get(pk=ticket.pk)
    assert (changed.version, fresh.version, fresh.reminder_revision) == (3, 3, 0)
    assert fresh.due_at == ticket.due_at
    event = TicketEvent.objects.get(ticket=ticket, version=3)
    assert (event.kind, event.actor) == ("UNBLOCKED", cast.user("second_agent"))
    assert event.data == {
        "link": row.pk,
        "blocker": {"ticket": blocker.pk, "number": blocker.number, "title": "Cable"},
    }
    assert Ticket.objects.filter(pk=blocker.pk).values().get() == before


def test_what_was_removed_can_be_added_again_the_other_way_round(cast: Cast) -> None:
    first, second = open_ticket(cast), open_ticket(cast)
    ticket = link(cast, first, second)
    act(cast, services.remove_blocker, ticket, link_id=TicketLink.objects.get().pk)

    link(cast, second, first)

    row = TicketLink.objects.get()
    assert (row.ticket, row.blocker) == (second, first)


def test_only_a_ticket_s_own_link_can_be_removed(cast: Cast) -> None:
    blocker, other = open_ticket(cast), open_ticket(cast)
    ticket = link(cast, other, blocker)
    row = TicketLink.objects.get()

    for wrong in (blocker, open_ticket(cast)):
        refused(
            NotFound,
            lambda wrong=wrong: act(cast, services.remove_blocker, wrong, link_id=row.pk),
        )
    refused(NotFound, lambda: act(cast, services.remove_blocker, ticket, link_id=10**30))


@pytest.mark.parametrize("link_id", ["1", None, True])
def test_a_link_is_named_by_a_whole_number(cast: Cast, link_id: Any) -> None:
    ticket = link(cast, open_ticket(cast), open_ticket(cast))

    refused(
        InvalidInput,
        lambda: act(cast, services.remove_blocker, ticket, link_id=link_id),
        field="link_id",
    )


# --- Who, when, on what -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "error"),
    [("customer", NotAllowed), ("second_customer", NotFound), ("stranger", NotFound)],
)
def test_only_staff_change_blockers(cast: Cast, who: str, error: type[Exception]) -> None:
    blocker, other = open_ticket(cast), open_ticket(cast)
    ticket = link(cast, open_ticket(cast), blocker)
    row = TicketLink.objects.get()

    refused(error, lambda: act(cast, services.add_blocker, ticket, by=who, number=other.number))
    refused(error, lambda: act(cast, services.remove_blocker, ticket, by=who, link_id=row.pk))


def test_a_stale_version_changes_no_blocker(cast: Cast) -> None:
    blocker, other, ticket = (open_ticket(cast) for _ in range(3))
    link(cast, ticket, blocker)
    row = TicketLink.objects.get()

    refused(VersionConflict, lambda: act(cast, services.add_blocker, ticket, number=other.number))
    refused(VersionConflict, lambda: act(cast, services.remove_blocker, ticket, link_id=row.pk))


@pytest.mark.parametrize("status", FINISHED)
def test_the_blockers_of_a_finished_ticket_stay(cast: Cast, status: Status) -> None:
    blocker, other = open_ticket(cast), open_ticket(cast)
    ticket = link(cast, open_ticket(cast), blocker)
    row = TicketLink.objects.get()
    move(cast, blocker, Status.IN_PROGRESS, Status.RESOLVED)
    steps = (Status.IN_PROGRESS, Status.RESOLVED, Status.CLOSED)
    ticket = move(cast, ticket, *steps[: steps.index(status) + 1])

    refused(InvalidTransition, lambda: link(cast, ticket, other))
    refused(InvalidTransition, lambda: act(cast, services.remove_blocker, ticket, link_id=row.pk))


def test_a_ticket_of_another_team_cannot_be_reached_through_this_one(cast: Cast) -> None:
    open_ticket(cast)
    theirs = elsewhere(cast)

    refused(NotFound, lambda: act(cast, services.add_blocker, theirs, number=1))


# --- Waiting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", sorted(ACTIVE))
def test_a_ticket_is_not_resolved_while_a_blocker_is_active(cast: Cast, status: Status) -> None:
    blocker = ticket_that_is(cast, status)
    ticket = move(cast, link(cast, open_ticket(cast), blocker), Status.IN_PROGRESS)

    refused(
        InvalidTransition,
        lambda: move(cast, ticket, Status.RESOLVED),
        says="^This ticket waits for #1, which is still open.$",
    )


def test_all_that_is_waited_for_is_named_and_the_resolved_ones_are_not(cast: Cast) -> None:
    blockers = [open_ticket(cast) for _ in range(3)]
    ticket = open_ticket(cast)
    for blocker in reversed(blockers):
        ticket = link(cast, ticket, blocker)
    ticket = move(cast, ticket, Status.IN_PROGRESS)
    move(cast, blockers[1], Status.IN_PROGRESS, Status.RESOLVED)

    refused(
        InvalidTransition,
        lambda: move(cast, ticket, Status.RESOLVED),
        says="^This ticket waits for #1, #3, which are still open.$",
    )


def test_what_is_waited_for_is_told_to_programs_as_data(cast: Cast) -> None:
    blocker = open_ticket(cast)
    ticket = move(cast, link(cast, open_ticket(cast), blocker), Status.IN_PROGRESS)

    with pytest.raises(InvalidTransition) as refusal:
        move(cast, ticket, Status.RESOLVED)

    assert refusal.value.data == {"blockers": [blocker.number]}


def test_a_ticket_that_waits_can_be_started_and_reopened(cast: Cast) -> None:
    blocker = open_ticket(cast)
    ticket = link(cast, open_ticket(cast), blocker)
    move(cast, blocker, Status.IN_PROGRESS, Status.RESOLVED)
    move(cast, ticket, Status.IN_PROGRESS, Status.RESOLVED)
    move(cast, blocker, Status.OPEN)

    ticket = move(cast, ticket, Status.OPEN, Status.IN_PROGRESS)

    assert ticket.status == Status.IN_PROGRESS


@pytest.mark.parametrize("how", ["resolved", "closed", "removed"])
def test_a_ticket_is_resolved_and_closed_when_nothing_is_waited_for(cast: Cast, how: str) -> None:
    blocker = open_ticket(cast)
    ticket = move(cast, link(cast, open_ticket(cast), blocker), Status.IN_PROGRESS)
    if how == "removed":
        ticket = act(cast, services.remove_blocker, ticket, link_id=TicketLink.objects.get().pk)
    else:
        steps = (Status.IN_PROGRESS, Status.RESOLVED, Status.CLOSED)
        move(cast, blocker, *steps[: 2 if how == "resolved" else 3])

    assert move(cast, ticket, Status.RESOLVED, Status.CLOSED).status == Status.CLOSED


def test_reopening_a_blocker_leaves_the_tickets_it_blocks_but_they_cannot_be_closed(
    cast: Cast,
) -> None:
    blocker = open_ticket(cast)
    ticket = link(cast, open_ticket(cast), blocker)
    move(cast, blocker, Status.IN_PROGRESS, Status.RESOLVED)
    move(cast, ticket, Status.IN_PROGRESS, Status.RESOLVED)
    before = Ticket.objects.filter(pk=ticket.pk).values().get()
    links = list(TicketLink.objects.values())

    move(cast, blocker, Status.OPEN)

    assert Ticket.objects.filter(pk=ticket.pk).values().get() == before
    assert list(TicketLink.objects.values()) == links
    refused(
        InvalidTransition,
        lambda: move(cast, ticket, Status.CLOSED),
        says="This ticket waits for #1",
    )


def test_a_ticket_that_blocks_others_is_resolved_as_any_other(cast: Cast) -> None:
    blocker = open_ticket(cast)
    ticket = link(cast, open_ticket(cast), blocker)

    move(cast, blocker, Status.IN_PROGRESS, Status.RESOLVED, Status.CLOSED)

    fresh = Ticket.objects.get(pk=ticket.pk)
    assert (fresh.status, fresh.version) == (Status.OPEN, ticket.version)


# --- What the database says ---------------------------------------------------------------------


def violated(call: Callable[[], object]) -> str | None:
    with pytest.raises(IntegrityError) as error, transaction.atomic():
        call()
    return error.value.__cause__.diag.constraint_name  # type: ignore[union-attr]


def test_the_database_refuses_what_the_services_would(cast: Cast) -> None:
    first, second, theirs = open_ticket(cast), open_ticket(cast), elsewhere(cast)
    make_link(cast, first, second)

    assert violated(lambda: make_link(cast, first, second)) == "ticket_link_once"
    assert violated(lambda: make_link(cast, first, first)) == "ticket_link_not_to_itself"
    for ticket, blocker, team, name in (
        (first, theirs, cast.team, "ticket_link_blocker_in_team"),
        (theirs, first, cast.team, "ticket_link_ticket_in_team"),
        (first, theirs, cast.other_team, "ticket_link_ticket_in_team"),
        (theirs, first, cast.other_team, "ticket_link_blocker_in_team"),
    ):
        found = violated(
            lambda ticket=ticket, blocker=blocker, team=team: make_link(
                cast, ticket, blocker, team=team
            )
        )
        assert found == name
    assert TicketLink.objects.count() == 1


# --- Reading ------------------------------------------------------------------------------------


def test_both_directions_are_read_in_one_query_each_by_number(cast: Cast) -> None:
    low, high, ticket, waiting = (
        open_ticket(cast, title=title) for title in ("Low", "High", "Middle", "Waiting")
    )
    link(cast, link(cast, ticket, high), low)
    link(cast, waiting, ticket)
    move(cast, high, Status.IN_PROGRESS)
    ids = {row.blocker_id: row.pk for row in TicketLink.objects.all()}

    with CaptureQueriesContext(connection) as captured:
        waits_for = selectors.waits_for(ticket=ticket)
        blocks = selectors.blocks(ticket=ticket)

    assert len(captured) == 2
    assert waits_for == [
        LinkedTicket(link_id=ids[low.pk], number=1, title="Low", status=Status.OPEN),
        LinkedTicket(link_id=ids[high.pk], number=2, title="High", status=Status.IN_PROGRESS),
    ]
    assert blocks == [
        LinkedTicket(link_id=ids[ticket.pk], number=4, title="Waiting", status=Status.OPEN)
    ]


def test_the_history_tells_staff_of_blockers_and_customers_nothing(cast: Cast) -> None:
    blocker = open_ticket(cast, by="second_customer", title="100% broken")
    ticket = link(cast, open_ticket(cast), blocker)
    act(cast, services.remove_blocker, ticket, link_id=TicketLink.objects.get().pk)
    act(cast, services.edit_ticket, blocker, title="Another title")

    def told(who: str) -> list[str]:
        viewer = selectors.viewer(user=cast.user(who), slug="support")
        return [
            history_entry(event, for_staff=viewer.is_staff).text
            for event in selectors.events(viewer=viewer, ticket=ticket)
        ]

    with override("en"):
        assert told("agent") == [
            "Ticket opened",
            "Now waits for #1 100% broken",
            "No longer waits for #1 100% broken",
        ]
        assert told("customer") == ["Ticket opened"]


@pytest.mark.usefixtures("plain_static")
@pytest.mark.django_db(transaction=True)
def test_the_admin_lists_and_shows_links_and_changes_none(cast: Cast, client: Client) -> None:
    client.force_login(UserFactory(is_superuser=True, is_staff=True))
    link(cast, open_ticket(cast), open_ticket(cast))
    row = TicketLink.objects.get()
    pages = [
        (reverse("admin:tickets_ticketlink_changelist") + "?q=1", 200),
        (reverse("admin:tickets_ticketlink_change", args=[row.pk]), 200),
        (reverse("admin:tickets_ticketlink_add"), 403),
        (reverse("admin:tickets_ticketlink_delete", args=[row.pk]), 403),
    ]

    assert [(url, client.get(url).status_code) for url, _ in pages] == pages
    changing = reverse("admin:tickets_ticketlink_change", args=[row.pk])
    assert client.post(changing, {"blocker": row.ticket_id}).status_code == 403
    assert TicketLink.objects.get() == row
