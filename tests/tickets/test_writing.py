"""Opening, editing, replying, noting and assigning."""

from typing import Any

import pytest

from helpdesk.errors import InvalidInput, InvalidTransition, NotAllowed, NotFound, VersionConflict
from tests.cast import Cast
from tests.factories import act, open_ticket
from tickets import services
from tickets.models import Comment, Ticket, TicketEvent


def kinds(ticket: Ticket) -> list[str]:
    return list(
        TicketEvent.objects.filter(ticket=ticket).order_by("version").values_list("kind", flat=True)
    )


@pytest.mark.parametrize("who", ["admin", "agent", "customer"])
def test_every_member_may_open_a_ticket(cast: Cast, who: str) -> None:
    ticket = open_ticket(cast, by=who)

    assert (ticket.creator, ticket.number, ticket.status) == (cast.user(who), 1, "OPEN")
    assert kinds(ticket) == ["CREATED"]


def test_a_stranger_may_not(cast: Cast) -> None:
    with pytest.raises(NotFound):
        open_ticket(cast, by="stranger")

    assert not Ticket.objects.exists()


def test_numbers_count_up_in_each_team_of_its_own(cast: Cast) -> None:
    numbers = [open_ticket(cast).number for _ in range(3)]
    elsewhere = services.create_ticket(
        team_id=cast.other_team.pk,
        actor_id=cast.user("stranger").pk,
        title="First",
        description="Here.",
    )

    assert (numbers, elsewhere.number) == ([1, 2, 3], 1)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", ""),
        ("title", "  "),
        ("title", "x" * 201),
        ("title", "a\x00b"),
        ("title", None),
        ("description", ""),
        ("description", "x" * 20_001),
        ("priority", "WHENEVER"),
        ("priority", ""),
        ("priority", None),
    ],
)
def test_a_ticket_that_cannot_be_kept_is_refused_with_the_field(
    cast: Cast, field: str, value: Any
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        open_ticket(cast, **{field: value})

    assert set(refusal.value.data["errors"]) == {field}
    assert not Ticket.objects.exists()


def test_editing_records_what_changed_and_leaves_the_due_time(cast: Cast) -> None:
    ticket = open_ticket(cast)
    due_at = ticket.due_at

    ticket = act(cast, services.edit_ticket, ticket, title="Fire!", priority="URGENT")

    assert (ticket.title, ticket.priority, ticket.due_at) == ("Fire!", "URGENT", due_at)
    assert (ticket.version, ticket.reminder_revision) == (1, 0)
    assert TicketEvent.objects.get(ticket=ticket, kind="EDITED").data == {
        "title": {"from": "Printer on fire", "to": "Fire!"},
        "priority": {"from": "NORMAL", "to": "URGENT"},
    }


def test_an_edit_that_changes_nothing_writes_nothing(cast: Cast) -> None:
    ticket = act(cast, services.edit_ticket, open_ticket(cast), priority="NORMAL")

    assert (ticket.version, kinds(ticket)) == (0, ["CREATED"])


def test_an_empty_edit_is_refused(cast: Cast) -> None:
    with pytest.raises(InvalidInput):
        act(cast, services.edit_ticket, open_ticket(cast))


def test_a_stale_edit_is_a_conflict(cast: Cast) -> None:
    ticket = open_ticket(cast)
    act(cast, services.edit_ticket, ticket, title="Mine")

    with pytest.raises(VersionConflict):
        act(cast, services.edit_ticket, ticket, version=0, title="Yours")

    assert Ticket.objects.get(pk=ticket.pk).title == "Mine"


@pytest.mark.parametrize("who", ["agent", "admin", "customer"])
def test_a_reply_raises_the_version_only(cast: Cast, who: str) -> None:
    ticket = open_ticket(cast)

    ticket = act(cast, services.reply_to_ticket, ticket, by=who, body=" Hello ")

    assert (ticket.version, ticket.reminder_revision) == (1, 0)
    comment = Comment.objects.get()
    assert (comment.body, comment.author, comment.internal) == ("Hello", cast.user(who), False)
    assert kinds(ticket) == ["CREATED", "REPLIED"]


def test_two_replies_to_the_same_version_are_both_heard(cast: Cast) -> None:
    ticket = open_ticket(cast)
    act(cast, services.reply_to_ticket, ticket, body="One")
    act(cast, services.reply_to_ticket, ticket, by="customer", body="Two")

    assert Comment.objects.count() == 2
    assert Ticket.objects.get(pk=ticket.pk).version == 2


def test_a_note_is_internal_and_for_staff(cast: Cast) -> None:
    ticket = open_ticket(cast)
    act(cast, services.add_internal_note, ticket, body="Careful.")
    assert Comment.objects.get().internal

    with pytest.raises(NotAllowed):
        act(cast, services.add_internal_note, ticket, by="customer", body="Let me in.")


@pytest.mark.parametrize("who", ["second_customer", "stranger"])
def test_somebody_elses_ticket_does_not_exist(cast: Cast, who: str) -> None:
    with pytest.raises(NotFound):
        act(cast, services.reply_to_ticket, open_ticket(cast), by=who, body="Hi")


@pytest.mark.parametrize("body", ["", " \n", "x" * 20_001, None, "\x00"])
def test_a_reply_that_cannot_be_kept_is_refused(cast: Cast, body: Any) -> None:
    ticket = open_ticket(cast)

    with pytest.raises(InvalidInput) as refusal:
        act(cast, services.reply_to_ticket, ticket, body=body)

    assert set(refusal.value.data["errors"]) == {"body"}
    assert not Comment.objects.exists()


def test_assigning_and_unassigning_record_who(cast: Cast) -> None:
    ticket = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)
    assert ticket.assignee == cast.agent
    ticket = act(cast, services.assign_ticket, ticket, membership_id=None)
    assert ticket.assignee is None

    assert (ticket.version, kinds(ticket)) == (2, ["CREATED", "ASSIGNED", "UNASSIGNED"])
    event = TicketEvent.objects.get(ticket=ticket, kind="UNASSIGNED")
    assert event.data["from"]["user"] == cast.user("agent").pk
    assert event.data["to"] is None


@pytest.mark.parametrize("who", ["customer", "stranger"])
def test_only_staff_of_the_team_can_be_assigned(cast: Cast, who: str) -> None:
    with pytest.raises(InvalidInput):
        act(
            cast,
            services.assign_ticket,
            open_ticket(cast),
            membership_id=getattr(cast, who).pk,
        )


def test_an_inactive_account_cannot_be_assigned(cast: Cast) -> None:
    agent = cast.user("second_agent")
    agent.is_active = False
    agent.save(update_fields=["is_active"])

    with pytest.raises(InvalidInput):
        act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.second_agent.pk)


def closed_ticket(cast: Cast) -> Ticket:
    ticket = act(cast, services.start_ticket, open_ticket(cast))
    ticket = act(cast, services.resolve_ticket, ticket, note="Done.")
    closed: Ticket = act(cast, services.close_ticket, ticket)
    return closed


@pytest.mark.parametrize(
    ("service", "arguments"),
    [
        (services.reply_to_ticket, {"body": "Hi"}),
        (services.add_internal_note, {"body": "Hi"}),
        (services.edit_ticket, {"title": "New"}),
        (services.assign_ticket, {"membership_id": None}),
    ],
)
def test_a_closed_ticket_changes_no_more(
    cast: Cast, service: Any, arguments: dict[str, Any]
) -> None:
    ticket = closed_ticket(cast)

    with pytest.raises(InvalidTransition):
        act(cast, service, ticket, **arguments)

    assert Ticket.objects.get(pk=ticket.pk).version == ticket.version
