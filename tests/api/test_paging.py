"""Pages neither skip nor repeat, whatever changes between them."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.conftest import Api, As, at, problem
from tests.cast import Cast
from tests.factories import act, open_ticket
from tickets import services
from tickets.models import Ticket

TICKETS = "teams/support/tickets/"


def pages(api: Api, address: str) -> Iterator[list[Any]]:
    """Page by page; the caller can do something in between."""
    following: str | None = address
    while following:
        answer = api.get(following.removeprefix("http://testserver"))
        assert answer.status_code == 200, answer.json()
        following = answer.json()["next"]
        yield answer.json()["results"]


def touch(cast: Cast, number: int) -> None:
    ticket = Ticket.objects.get(number=number)
    act(cast, services.add_internal_note, ticket, body="Touched")


@pytest.mark.parametrize("order", ["number", "-number", "updated_at", "-updated_at"])
@pytest.mark.parametrize("limit", [1, 3, 4])
def test_nothing_is_skipped_or_repeated_while_tickets_change(
    cast: Cast, agent: Api, order: str, limit: int
) -> None:
    for _number in range(12):
        open_ticket(cast)
    for number in (7, 2, 11):
        touch(cast, number)
    expected = [each["number"] for each in agent.get(f"{TICKETS}?order={order}").json()["results"]]
    assert sorted(expected) == list(range(1, 13))

    seen: list[int] = []
    for turn, page in enumerate(pages(agent, f"{TICKETS}?order={order}&limit={limit}")):
        seen += [each["number"] for each in page]
        if turn < 5:
            open_ticket(cast)
        # One that was shown and one that was not; both would jump over the reader.
        touch(cast, expected[0])
        touch(cast, expected[-1 - turn % 3])
        touch(cast, expected[len(seen) % 12])

    new = [number for number in seen if number > 12]
    assert [number for number in seen if number <= 12] == expected
    assert new == (sorted(new) if order == "number" else [])


def test_the_order_of_changes_is_for_staff(cast: Cast, by: As) -> None:
    for order in ("updated_at", "-updated_at"):
        problem(by("customer").get(f"{TICKETS}?order={order}"), 403, "not-allowed")


def test_a_cursor_of_another_order_is_none(cast: Cast, agent: Api) -> None:
    for _number in range(3):
        open_ticket(cast)
    following = agent.get(f"{TICKETS}?limit=1").json()["next"].removeprefix("http://testserver")
    problem(agent.get(f"{following}&order=updated_at"), 400, "invalid-input")


@pytest.mark.parametrize(("rest", "expected"), [("comments/", 5), ("events/", 6)])
def test_conversation_and_history_come_in_pages(
    cast: Cast, agent: Api, rest: str, expected: int
) -> None:
    ticket = open_ticket(cast)
    for number in range(5):
        act(cast, services.reply_to_ticket, ticket, body=f"{number}")
    found = [each["id"] for page in pages(agent, at(ticket, f"{rest}?limit=2")) for each in page]
    assert len(found) == len(set(found)) == expected
    assert found == sorted(found)


def test_members_tasks_and_an_empty_list(cast: Cast, by: As, agent: Api) -> None:
    assert agent.get(TICKETS).json() == {"next": None, "results": []}
    assert agent.get(f"{TICKETS}?order=updated_at").json() == {"next": None, "results": []}
    found = [
        each["user"]["username"]
        for page in pages(agent, "teams/support/members/?limit=2")
        for each in page
    ]
    assert found == ["admin", "agent", "second_agent", "customer", "second_customer"]
    for _number in range(3):
        open_ticket(cast)
    tasks = [each["id"] for page in pages(agent, "teams/support/tasks/?limit=2") for each in page]
    assert len(tasks) == 3
    assert tasks == sorted(tasks, reverse=True)


class TestFilters:
    @pytest.fixture
    def tickets(self, cast: Cast) -> list[Ticket]:
        one = act(
            cast,
            services.assign_ticket,
            open_ticket(cast, title="打印机着火"),
            membership_id=cast.agent.pk,
        )
        two = act(
            cast, services.start_ticket, open_ticket(cast, priority="HIGH", by="second_customer")
        )
        three = act(
            cast, services.schedule_reminder, open_ticket(cast, description="A flood"), minutes=None
        )
        return [one, two, three]

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("status=OPEN", [3, 1]),
            ("status=OPEN&status=IN_PROGRESS", [3, 2, 1]),
            ("priority=HIGH", [2]),
            ("assignee=me", [1]),
            ("assignee=none", [3, 2]),
            ("overdue=true", []),
            ("overdue=false", [3, 2, 1]),
            ("due_after=2000-01-01T00:00:00Z", [2, 1]),
            ("due_before=2000-01-01T00:00:00Z", []),
            ("updated_since=2000-01-01T00:00:00Z", [3, 2, 1]),
            ("updated_since=2100-01-01T00:00:00Z", []),
            ("search=着火", [1]),
            ("search=FLOOD", [3]),
            ("search=%232", [2]),
            ("search=%25", []),
            ("search=_", []),
            ("order=number", [1, 2, 3]),
            ("order=updated_at", [1, 2, 3]),
        ],
    )
    def test_staff(self, tickets: Any, agent: Api, query: str, expected: list[int]) -> None:
        found = agent.get(f"{TICKETS}?{query}").json()["results"]
        assert [each["number"] for each in found] == expected

    def test_ids(self, tickets: Any, cast: Cast, agent: Api) -> None:
        def numbers(query: str) -> list[int]:
            return [each["number"] for each in agent.get(f"{TICKETS}?{query}").json()["results"]]

        assert numbers(f"assignee={cast.agent.pk}") == [1]
        assert numbers(f"creator={cast.user('second_customer').pk}") == [2]
        assert numbers("creator=me") == []

    @pytest.mark.parametrize(
        "query",
        [
            "assignee=none",
            "overdue=true",
            "overdue=false",
            "due_before=2100-01-01T00:00:00Z",
            "due_after=2000-01-01T00:00:00Z",
            "updated_since=2000-01-01T00:00:00Z",
        ],
    )
    def test_customers_cannot_ask_for_what_is_not_for_them(
        self, tickets: Any, by: As, query: str
    ) -> None:
        problem(by("customer").get(f"{TICKETS}?{query}"), 403, "not-allowed")

    def test_customers_find_their_own(self, tickets: Any, by: As) -> None:
        found = by("customer").get(f"{TICKETS}?search=Printer").json()["results"]
        assert [each["number"] for each in found] == [3]
