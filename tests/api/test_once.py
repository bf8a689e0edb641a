"""Idempotency keys: the same request is carried out once, whatever became of its answer."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.db.models import F

from reminders.audit.prune import prune
from tests.api.conftest import Api, As, at, problem
from tests.cast import Cast, make_cast
from tests.factories import MembershipFactory, UserFactory, act, open_ticket
from tickets import receipts, services
from tickets.models import Comment, Membership, Receipt, Ticket, TicketLink
from tickets.states import Role

TICKETS = "teams/support/tickets/"
BODY = {"title": "Title", "description": "Text"}


def comments(cast: Cast) -> tuple[str, Any]:
    return at(open_ticket(cast), "comments/"), {"body": "Hello"}


def links(cast: Cast) -> tuple[str, Any]:
    blocker = open_ticket(cast)
    return at(open_ticket(cast), "links/"), {"blocker": blocker.number, "version": 0}


def members(cast: Cast) -> tuple[str, Any]:
    UserFactory(username="new")
    return "teams/support/members/", {"username": "new", "role": "AGENT"}


@pytest.mark.parametrize(
    ("of", "table"),
    [
        (lambda cast: (TICKETS, BODY), Ticket),
        (comments, Comment),
        (links, TicketLink),
        (members, Membership),
    ],
    ids=["ticket", "comment", "link", "member"],
)
def test_the_same_request_gets_the_first_answer_again(
    cast: Cast, by: As, of: Callable[[Cast], tuple[str, Any]], table: Any
) -> None:
    address, body = of(cast)
    first = by("admin").post(address, body, Idempotency_Key="k1")
    assert first.status_code == 201, first.json()
    count = table.objects.count()
    for ticket in Ticket.objects.all():  # The world moves on.
        act(cast, services.add_internal_note, ticket, body="Meanwhile")
    count = table.objects.count()

    again = by("admin").post(address, body, Idempotency_Key="k1")

    assert (again.status_code, again.json()) == (201, first.json())
    assert again["Idempotency-Replayed"] == "true"
    assert again.headers.get("ETag") == first.headers.get("ETag")
    assert table.objects.count() == count


def test_another_body_address_or_version_with_the_same_key_is_refused(
    cast: Cast, agent: Api
) -> None:
    agent.post(TICKETS, BODY, Idempotency_Key="k1")
    for answer in (
        agent.post(TICKETS, {**BODY, "title": "Other"}, Idempotency_Key="k1"),
        agent.post(at(Ticket.objects.get(), "comments/"), {"body": "x"}, Idempotency_Key="k1"),
    ):
        problem(answer, 422, "idempotency-key-reused")
    assert (Ticket.objects.count(), Comment.objects.count()) == (1, 0)


def test_keys_belong_to_a_person(cast: Cast, by: As) -> None:
    for name in ("agent", "second_agent"):
        assert by(name).post(TICKETS, BODY, Idempotency_Key="k1").status_code == 201
    assert Ticket.objects.count() == 2


def test_a_refusal_is_not_kept(cast: Cast, agent: Api) -> None:
    ticket, blocker = open_ticket(cast), open_ticket(cast)
    body = {"blocker": blocker.number, "version": 1}
    problem(agent.post(at(ticket, "links/"), body, Idempotency_Key="k1"), 409, "version-conflict")
    act(cast, services.reply_to_ticket, ticket, body="Now it is version 1")
    assert agent.post(at(ticket, "links/"), body, Idempotency_Key="k1").status_code == 201


def test_who_may_no_longer_gets_no_answer_again(cast: Cast, by: As) -> None:
    by("second_agent").post(TICKETS, BODY, Idempotency_Key="k1")
    services.remove_member(
        team_id=cast.team.pk, actor_id=cast.user("admin").pk, membership_id=cast.second_agent.pk
    )
    problem(by("second_agent").post(TICKETS, BODY, Idempotency_Key="k1"), 404, "not-found")


def test_a_key_lasts_a_day(cast: Cast, agent: Api) -> None:
    agent.post(TICKETS, BODY, Idempotency_Key="k1")
    Receipt.objects.update(created_at=F("created_at") - receipts.KEEP)
    agent.post(TICKETS, BODY, Idempotency_Key="k1")
    assert Ticket.objects.count() == 2
    assert Receipt.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_old_receipts_are_forgotten_and_no_others() -> None:
    api = Api(make_cast().user("agent"))
    api.post(TICKETS, BODY, Idempotency_Key="old")
    Receipt.objects.update(created_at=F("created_at") - receipts.KEEP - timedelta(seconds=1))
    api.post(TICKETS, BODY, Idempotency_Key="new")
    assert prune()["receipts"] == 1
    assert Receipt.objects.get().key == "new"


@pytest.mark.django_db(transaction=True)
def test_a_crash_leaves_both_or_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails after the ticket was written takes back the ticket as well."""
    api = Api(make_cast().user("agent"))
    keep = receipts.keep

    def crash(*arguments: Any, **named: Any) -> None:
        keep(*arguments, **named)
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(receipts, "keep", crash)
        assert api.post(TICKETS, BODY, Idempotency_Key="k1").status_code == 500
    assert (Ticket.objects.count(), Receipt.objects.count()) == (0, 0)
    assert api.post(TICKETS, BODY, Idempotency_Key="k1").status_code == 201
    assert (Ticket.objects.count(), Receipt.objects.count()) == (1, 1)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    def call(of: Callable[[], Any]) -> Any:
        try:
            return of()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [each.result(30) for each in [pool.submit(call, each) for each in calls]]


@pytest.mark.django_db(transaction=True)
def test_ten_at_once_make_one_ticket_and_get_one_answer() -> None:
    user = make_cast().user("agent")
    apis = [Api(user) for _each in range(10)]
    answers = at_once(
        *(lambda api=api: api.post(TICKETS, BODY, Idempotency_Key="k1") for api in apis)
    )
    assert {answer.status_code for answer in answers} == {201}
    assert all(answer.json() == answers[0].json() for answer in answers)
    assert Ticket.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_one_key_in_two_teams_at_once_makes_one_ticket() -> None:
    cast = make_cast()
    MembershipFactory(team=cast.other_team, user=cast.user("agent"), role=Role.AGENT)
    apis = [Api(cast.user("agent")) for _each in range(6)]
    addresses = [TICKETS, "teams/elsewhere/tickets/"] * 3
    answers = at_once(
        *(
            lambda api=api, address=address: api.post(address, BODY, Idempotency_Key="k1")
            for api, address in zip(apis, addresses, strict=True)
        )
    )
    assert sorted(answer.status_code for answer in answers) == [201, 201, 201, 422, 422, 422]
    assert Ticket.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_who_edit_at_once_one_wins_and_the_other_can_go_on() -> None:
    cast = make_cast()
    ticket = open_ticket(cast)
    names = ("agent", "second_agent")
    apis = {name: Api(cast.user(name)) for name in names}
    answers = at_once(
        *(
            lambda name=name: apis[name].patch(at(ticket), {"title": name, "version": 0})
            for name in names
        )
    )
    by_status = {answer.status_code: name for answer, name in zip(answers, names, strict=True)}
    assert set(by_status) == {200, 409}
    winner, loser = by_status[200], by_status[409]
    said = problem(answers[names.index(loser)], 409, "version-conflict")
    assert (said["current_version"], said["ticket"]["title"]) == (1, winner)
    again = apis[loser].patch(at(ticket), {"title": loser, "version": said["current_version"]})
    assert (again.status_code, again.json()["title"]) == (200, loser)
    ticket.refresh_from_db()
    assert (ticket.title, ticket.version) == (loser, 2)
