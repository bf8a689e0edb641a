"""The pages of tickets, as people use them: what they show, what they do, and what they refuse without losing anything."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from reminders.models import Task
from tests.cast import Cast
from tests.factories import UserFactory, act, make_due, open_ticket, run
from tickets import services
from tickets.models import Comment, Ticket, TicketLink

pytestmark = pytest.mark.usefixtures("plain_static")


@pytest.fixture
def page(cast: Cast, client: Client) -> "Pages":
    return Pages(cast, client)


class Pages:
    """A browser that signs in as one of the cast."""

    def __init__(self, cast: Cast, client: Client) -> None:
        self.cast, self.client = cast, client

    def sign_in(self, who: str) -> None:
        self.client.force_login(self.cast.user(who))

    def url(self, name: str, **kwargs: Any) -> str:
        return reverse(name, kwargs={"slug": self.cast.team.slug, **kwargs})

    def get(self, name: str, query: str = "", **kwargs: Any) -> tuple[int, str]:
        answer = self.client.get(self.url(name, **kwargs) + query)
        return answer.status_code, answer.content.decode()

    def do(self, ticket: Ticket, action: str, **data: Any) -> tuple[int, str]:
        answer = self.client.post(
            self.url("ticket-action", number=ticket.number, action=action), data
        )
        return answer.status_code, answer.content.decode()


# --- Doing things -------------------------------------------------------------------------------


def test_a_customer_opens_a_ticket_and_lands_on_it(page: Pages) -> None:
    page.sign_in("customer")

    answer = page.client.post(
        page.url("new-ticket"),
        {"title": "Printer", "description": "It burns.", "priority": "HIGH"},
        follow=True,
    )

    ticket = Ticket.objects.get()
    assert answer.redirect_chain == [(page.url("ticket", number=ticket.number), 302)]
    assert (ticket.title, ticket.priority, ticket.creator.username) == (
        "Printer",
        "HIGH",
        "customer",
    )


def test_everything_an_agent_can_do_on_a_ticket(cast: Cast, page: Pages) -> None:
    ticket, other = open_ticket(cast), open_ticket(cast)
    fire = {"title": "Fire", "description": "Everywhere.", "priority": "URGENT"}
    page.sign_in("agent")
    steps: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("reply", {"body": "Hello"}, {}),
        ("note", {"body": "Careful"}, {}),
        ("assign", {"membership_id": cast.agent.pk}, {"assignee_id": cast.agent.pk}),
        ("edit", fire, fire),
        ("reminder", {"minutes": "30", "note": "Call"}, {"reminder_note": "Call"}),
        ("cancel-reminder", {}, {"due_at": None}),
        ("block", {"number": other.number}, {}),
        ("unblock", {}, {}),
        ("assign", {"membership_id": ""}, {"assignee_id": None}),
        ("transition", {"to": "IN_PROGRESS"}, {"status": "IN_PROGRESS"}),
        ("transition", {"to": "RESOLVED", "note": "Done"}, {"status": "RESOLVED"}),
        ("transition", {"to": "OPEN", "note": "Again"}, {"status": "OPEN"}),
        ("transition", {"to": "IN_PROGRESS"}, {"status": "IN_PROGRESS"}),
        ("transition", {"to": "RESOLVED", "note": "Done"}, {"status": "RESOLVED"}),
        ("transition", {"to": "CLOSED"}, {"status": "CLOSED"}),
    ]
    for version, (action, data, expected) in enumerate(steps):
        sent = {"link_id": TicketLink.objects.get().pk} if action == "unblock" else data
        status, _ = page.do(ticket, action, version=version, **sent)

        ticket.refresh_from_db()
        assert (status, ticket.version) == (302, version + 1), action
        assert {name: getattr(ticket, name) for name in expected} == expected
        assert page.get("ticket", number=ticket.number)[0] == 200


def test_the_minutes_field_starts_at_60_and_that_sets_nothing(cast: Cast, page: Pages) -> None:
    ticket = act(cast, services.schedule_reminder, open_ticket(cast), minutes=None)
    page.sign_in("agent")

    _, html = page.get("ticket", number=ticket.number)

    assert 'name="minutes" value="60"' in html
    assert "No reminder is set." in html


def test_the_panel_shows_until_when_by_whom_and_for_whom(cast: Cast, page: Pages) -> None:
    ticket = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)
    ticket = act(
        cast, services.schedule_reminder, ticket, by="second_agent", minutes=45, note="Call back"
    )
    page.sign_in("agent")

    _, html = page.get("ticket", number=ticket.number)

    assert f'datetime="{ticket.due_at.isoformat()}"' in html
    assert "data-countdown=" in html
    for text in ("second_agent", "Call back", "Would reach", "(responsible)"):
        assert text in html


def test_the_panel_shows_times_in_the_persons_own_zone(cast: Cast, page: Pages) -> None:
    ticket = open_ticket(cast)
    Ticket.objects.filter(pk=ticket.pk).update(due_at="2030-01-31T23:30:00Z")
    agent = cast.user("agent")
    agent.time_zone = "Asia/Shanghai"
    agent.save(update_fields=["time_zone"])
    page.sign_in("agent")

    _, html = page.get("ticket", number=ticket.number)

    assert "1 Feb 2030, 07:30" in html
    assert 'datetime="2030-02-01T07:30:00+08:00"' in html


def test_after_it_fired_the_page_says_to_whom_how_late_and_that_the_proof_holds(
    cast: Cast, page: Pages
) -> None:
    ticket = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)
    run(make_due(ticket))
    page.sign_in("agent")

    _, html = page.get("ticket", number=ticket.number)

    assert "Reminder sent to agent" in html
    assert "checked: the rows agree with it" in html
    assert "overdue by" in html


def test_the_page_shows_what_a_ticket_waits_for_and_what_it_blocks(cast: Cast, page: Pages) -> None:
    blocker, blocked = open_ticket(cast, title="Cable"), open_ticket(cast, title="Party")
    ticket = act(cast, services.add_blocker, open_ticket(cast), number=blocker.number)
    act(cast, services.add_blocker, blocked, number=ticket.number)
    act(cast, services.start_ticket, blocker)
    page.sign_in("agent")

    _, html = page.get("ticket", number=ticket.number)

    section = html[html.index('aria-label="Blockers"') :].partition("</section>")[0]
    waits_for, _, blocks = section.partition(">Blocks<")
    for part, other, status in ((waits_for, blocker, "In progress"), (blocks, blocked, "Open")):
        assert f'href="{page.url("ticket", number=other.number)}"' in part
        assert f">#{other.number} {other.title}</a>" in part
        assert f">{status}</span>" in part
    link = TicketLink.objects.get(ticket=ticket)
    assert f'name="link_id" value="{link.pk}" aria-label="Remove #{blocker.number}"' in waits_for
    assert 'name="number"' in waits_for
    assert "<form" not in blocks
    assert "Now waits for #1 Cable" in html


def test_a_resolved_ticket_still_says_what_it_waited_for(cast: Cast, page: Pages) -> None:
    blocker = open_ticket(cast, title="Cable")
    ticket = act(cast, services.add_blocker, open_ticket(cast), number=blocker.number)
    for each in (blocker, ticket):
        each.refresh_from_db()
        act(cast, services.start_ticket, each)
        each.refresh_from_db()
        act(cast, services.resolve_ticket, each, note="Done.")
    page.sign_in("agent")

    _, html = page.get("ticket", number=ticket.number)

    section = html[html.index('aria-label="Blockers"') :].partition("</section>")[0]
    assert "#1 Cable" in section
    assert "<form" not in section


# --- Being refused ------------------------------------------------------------------------------


def test_a_conflict_shows_the_fresh_ticket_and_keeps_what_was_typed(
    cast: Cast, page: Pages
) -> None:
    ticket = open_ticket(cast)
    act(cast, services.edit_ticket, ticket, by="second_agent", title="Changed by somebody")
    page.sign_in("agent")

    status, html = page.do(ticket, "reminder", version=0, minutes="17", note="My long note")

    assert status == 409
    assert "Somebody changed this ticket" in html
    assert "Changed by somebody" in html
    assert 'value="17"' in html
    assert 'value="My long note"' in html
    assert 'name="version" value="1"' in html
    assert Ticket.objects.get(pk=ticket.pk).version == 1

    # Having seen it, the person sends the same again.
    assert page.do(ticket, "reminder", version=1, minutes="17", note="My long note")[0] == 302


def test_a_blocker_that_is_refused_is_said_at_its_field_and_kept(cast: Cast, page: Pages) -> None:
    other, ticket = open_ticket(cast), open_ticket(cast)
    act(cast, services.add_blocker, other, number=ticket.number)
    page.sign_in("agent")

    status, html = page.do(ticket, "block", version=0, number=other.number)

    assert status == 400
    assert 'id="id_block_number_error">#1 itself waits for this ticket' in html
    assert '<a class="alert-link" href="#id_block_number">Number of the blocker</a>' in html
    assert 'name="number" value="1"' in html
    assert not TicketLink.objects.filter(ticket=ticket).exists()


def test_a_conflict_keeps_the_number_that_was_typed(cast: Cast, page: Pages) -> None:
    ticket = act(cast, services.start_ticket, open_ticket(cast))
    act(cast, services.resolve_ticket, ticket, note="I was faster.")
    page.sign_in("agent")

    status, html = page.do(ticket, "block", version=ticket.version, number=17)

    assert status == 409
    assert "The blockers of a resolved or closed ticket cannot be changed." in html
    assert 'name="number" value="17"' in html


def test_a_ticket_that_waits_says_for_what_and_keeps_the_note(cast: Cast, page: Pages) -> None:
    blocker = open_ticket(cast)
    ticket = act(cast, services.start_ticket, open_ticket(cast))
    ticket = act(cast, services.add_blocker, ticket, number=blocker.number)
    page.sign_in("agent")

    status, html = page.do(
        ticket, "transition", version=ticket.version, to="RESOLVED", note="It took me an hour."
    )

    assert status == 409
    assert "This ticket waits for #1, which is still open." in html
    assert "It took me an hour." in html
    assert Ticket.objects.get(pk=ticket.pk).status == "IN_PROGRESS"


def test_a_blocker_of_another_ticket_is_not_found(cast: Cast, page: Pages) -> None:
    blocker, ticket, other = (open_ticket(cast) for _ in range(3))
    act(cast, services.add_blocker, other, number=blocker.number)
    page.sign_in("agent")

    for link_id in (TicketLink.objects.get().pk, 0, "9" * 30):
        assert page.do(ticket, "unblock", version=0, link_id=link_id)[0] == 404
    assert TicketLink.objects.get().ticket == other


@pytest.mark.parametrize("action", ["reply", "note"])
def test_a_reply_to_a_ticket_that_was_closed_meanwhile_is_not_lost(
    cast: Cast, page: Pages, action: str
) -> None:
    ticket = act(cast, services.start_ticket, open_ticket(cast))
    ticket = act(cast, services.resolve_ticket, ticket, note="Done.")
    act(cast, services.close_ticket, ticket)
    page.sign_in("agent")

    status, html = page.do(ticket, action, body="A very long text")

    assert status == 409
    assert "Closed is final" in html
    assert "A very long text" in html
    assert not Comment.objects.exists()


@pytest.mark.parametrize("meanwhile", ["nothing", "resolved"])
def test_the_note_of_a_refused_step_is_kept(cast: Cast, page: Pages, meanwhile: str) -> None:
    ticket = act(cast, services.start_ticket, open_ticket(cast))
    if meanwhile == "resolved":
        act(cast, services.resolve_ticket, ticket, note="I was faster.")
    else:
        act(cast, services.edit_ticket, ticket, title="New title")
    page.sign_in("agent")

    status, html = page.do(
        ticket, "transition", version=ticket.version, to="RESOLVED", note="It took me an hour."
    )

    assert status == 409
    assert "It took me an hour." in html


def test_a_step_somebody_else_took_first_is_a_conflict(cast: Cast, page: Pages) -> None:
    ticket = open_ticket(cast)
    act(cast, services.start_ticket, ticket)
    page.sign_in("agent")

    status, _ = page.do(ticket, "transition", version=0, to="IN_PROGRESS")

    assert status == 409


@pytest.mark.parametrize(
    ("action", "data"),
    [
        ("reminder", {"minutes": "0"}),
        ("reminder", {"minutes": "-1"}),
        ("reminder", {"minutes": "10081"}),
        ("reminder", {"minutes": "1.5"}),
        ("reminder", {"minutes": "true"}),
        ("reminder", {"minutes": ""}),
        ("reminder", {}),
        ("reminder", {"minutes": "9" * 5000}),
        ("reminder", {"minutes": "6\x000"}),
        ("reminder", {"minutes": "60", "note": "x" * 201}),
        ("reminder", {"minutes": "60", "note": "a\x00b"}),
        ("reminder", {"minutes": "60", "version": "x"}),
        ("reminder", {"minutes": "60", "version": ""}),
        ("reminder", {"minutes": "60", "version": "9" * 30}),
        ("cancel-reminder", {"version": "1e3"}),
        ("assign", {"membership_id": "999999999999999999999"}),
        ("assign", {"membership_id": "x"}),
        ("edit", {"title": "", "priority": "LOW", "description": "x"}),
        ("edit", {"title": "x" * 201, "priority": "LOW", "description": "x"}),
        ("edit", {"title": "x", "priority": "SOON", "description": "x"}),
        ("edit", {"title": "x", "priority": "LOW", "description": ""}),
        ("edit", {"title": "x", "priority": "LOW", "description": "x" * 20_001}),
        ("transition", {"to": "GONE"}),
        ("transition", {}),
        ("transition", {"to": "CLOSED"}),
        ("block", {"number": ""}),
        ("block", {"number": "x"}),
        ("block", {"number": "-1"}),
        ("block", {"number": "1"}),
        ("block", {"number": "2"}),
        ("block", {"number": "9" * 30}),
        ("block", {"number": "9" * 5000}),
        ("unblock", {}),
        ("unblock", {"link_id": "x"}),
        ("reply", {"body": ""}),
        ("reply", {"body": "   "}),
        ("reply", {"body": "\x00"}),
        ("note", {}),
    ],
)
def test_input_that_makes_no_sense_is_an_error_on_the_page_and_changes_nothing(
    cast: Cast, page: Pages, action: str, data: dict[str, str]
) -> None:
    ticket = open_ticket(cast)
    page.sign_in("agent")

    status, html = page.do(ticket, action, **{"version": "0", **data})

    assert status in (400, 409)
    assert "invalid-feedback" in html or 'role="alert"' in html
    ticket.refresh_from_db()
    assert ticket.version == 0
    assert not Comment.objects.exists()


def test_what_is_wrong_is_said_at_the_top_and_leads_to_its_field(cast: Cast, page: Pages) -> None:
    ticket = open_ticket(cast)
    page.sign_in("agent")

    status, html = page.do(ticket, "reminder", version=0, minutes="1.5")

    assert status == 400
    alert = html[html.index('role="alert"') :].partition("</div>")[0]
    assert "Some of the input is not valid." in alert
    assert '<a class="alert-link" href="#id_reminder_minutes">In minutes</a>' in alert
    assert 'id="id_reminder_minutes_error"' in html


def test_a_conflict_is_said_at_the_top_and_at_its_form(cast: Cast, page: Pages) -> None:
    ticket = open_ticket(cast)
    act(cast, services.edit_ticket, ticket, by="second_agent", title="Changed by somebody")
    page.sign_in("agent")

    for action, data in (
        ("reminder", {"minutes": "17"}),
        ("cancel-reminder", {}),
        ("assign", {"membership_id": ""}),
        ("edit", {"title": "Mine", "priority": "LOW", "description": "It smokes."}),
        ("transition", {"to": "IN_PROGRESS"}),
        ("block", {"number": "17"}),
        ("unblock", {"link_id": "1"}),
    ):
        status, html = page.do(ticket, action, version=0, **data)
        assert (status, html.count("Somebody changed this ticket")) == (409, 2), action


def test_a_refusal_that_only_the_service_can_know_stands_at_its_field(
    cast: Cast, page: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The member was still staff when the form was made, and no longer is under the lock."""
    ticket = open_ticket(cast)
    page.sign_in("agent")
    monkeypatch.setattr("tickets.selectors.assignable", lambda *, team_id: [cast.customer])

    status, html = page.do(ticket, "assign", version=0, membership_id=cast.customer.pk)

    assert status == 400
    assert 'id="id_assign_membership_id_error">Tickets are assigned to active staff' in html
    assert Ticket.objects.get(pk=ticket.pk).assignee is None


def test_a_closed_ticket_still_says_who_was_responsible(cast: Cast, page: Pages) -> None:
    ticket = act(
        cast, services.assign_ticket, open_ticket(cast), membership_id=cast.second_agent.pk
    )
    ticket = act(cast, services.start_ticket, ticket)
    ticket = act(cast, services.resolve_ticket, ticket, note="Done.")
    act(cast, services.close_ticket, ticket)
    page.sign_in("agent")

    _, html = page.get("ticket", number=ticket.number)

    aside = html[html.index('class="ticket-aside"') : html.index('class="ticket-history"')]
    assert "second_agent" in aside
    assert "<form" not in aside


# What makes sense, and what does not: neither tells a customer anything.
ACTIONS = [
    ("reminder", {"minutes": "5"}),
    ("cancel-reminder", {}),
    ("note", {"body": "Hi"}),
    ("assign", {"membership_id": ""}),
    ("edit", {"title": "New", "priority": "LOW", "description": "x"}),
    ("transition", {"to": "IN_PROGRESS"}),
    ("block", {"number": "1"}),
    ("unblock", {"link_id": "1"}),
    ("reminder", {"minutes": "x"}),
    ("cancel-reminder", {"version": "x"}),
    ("note", {"body": ""}),
    ("assign", {"membership_id": "x"}),
    ("edit", {"title": "", "priority": ""}),
    ("transition", {"to": ""}),
    ("block", {"number": "x"}),
    ("unblock", {"link_id": ""}),
]


@pytest.mark.parametrize(("action", "data"), ACTIONS)
@pytest.mark.parametrize(
    ("who", "expected"),
    [("customer", 403), ("second_customer", 404), ("stranger", 404), ("second_agent", 404)],
)
def test_what_is_for_staff_is_refused_to_everybody_else(
    cast: Cast, page: Pages, action: str, data: dict[str, str], who: str, expected: int
) -> None:
    ticket = open_ticket(cast)
    page.sign_in(who)
    if who == "second_agent":  # Until a moment ago.
        services.remove_member(
            team_id=cast.team.pk,
            actor_id=cast.user("admin").pk,
            membership_id=cast.second_agent.pk,
        )

    status, html = page.do(ticket, action, **{"version": "0", **data})

    assert status == expected
    for text in ("<textarea", "<select", "invalid-feedback"):
        assert text not in html
    ticket.refresh_from_db()
    assert ticket.version == 0


@pytest.mark.parametrize("who", ["second_customer", "stranger"])
def test_somebody_elses_ticket_is_not_found(cast: Cast, page: Pages, who: str) -> None:
    ticket = open_ticket(cast)
    page.sign_in(who)

    assert page.get("ticket", number=ticket.number)[0] == 404
    assert page.do(ticket, "reply", body="Hi")[0] == 404


def test_a_removed_member_finds_nothing(cast: Cast, page: Pages) -> None:
    ticket = open_ticket(cast)
    page.sign_in("agent")
    services.remove_member(
        team_id=cast.team.pk, actor_id=cast.user("admin").pk, membership_id=cast.agent.pk
    )

    assert page.get("tickets")[0] == 404
    assert page.get("ticket", number=ticket.number)[0] == 404
    assert page.do(ticket, "reply", body="Hi")[0] == 404
    assert page.get("tasks")[0] == 404


def test_pages_answer_a_request_for_their_head(cast: Cast, page: Pages) -> None:
    ticket = open_ticket(cast)
    page.sign_in("agent")

    for name, arguments in (("tickets", {}), ("ticket", {"number": ticket.number}), ("tasks", {})):
        answer = page.client.head(page.url(name, **arguments))
        assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize("name", ["home", "tickets", "new-ticket", "ticket", "tasks", "task"])
def test_strangers_are_asked_to_sign_in(cast: Cast, client: Client, name: str) -> None:
    ticket = open_ticket(cast)
    arguments: dict[str, Any] = {} if name == "home" else {"slug": cast.team.slug}
    if name == "ticket":
        arguments["number"] = ticket.number
    if name == "task":
        arguments["task_id"] = Task.objects.get().pk
    address = reverse(name, kwargs=arguments)

    answer = client.get(address)

    assert (answer.status_code, answer.headers["Location"]) == (302, f"/sign-in/?next={address}")


@pytest.mark.parametrize(
    "address",
    [
        "/t/support/tickets/999999999999999999/",
        "/t/support/tickets/99999999999999999999999/",
        "/t/support/tickets/0/",
        "/t/nowhere/tickets/",
        "/t/support/tickets/1/nothing/",
        "/t/support/tasks/999999999999999999/",
        "/t/support/tasks/99999999999999999999/",
        "/nothing",
    ],
)
def test_an_address_of_nothing_is_a_page_that_says_so(
    cast: Cast, page: Pages, address: str
) -> None:
    page.sign_in("agent")

    answer = page.client.get(address)

    assert answer.status_code == 404
    assert "There is nothing here that you may see." in answer.content.decode()


def test_an_action_opened_by_address_leads_back_to_its_ticket(cast: Cast, page: Pages) -> None:
    ticket = open_ticket(cast)
    page.sign_in("agent")

    answer = page.client.get(page.url("ticket-action", number=ticket.number, action="reply"))

    assert answer.headers["Location"] == page.url("ticket", number=ticket.number)


def test_no_two_elements_share_an_id_whatever_was_refused(cast: Cast, page: Pages) -> None:
    blocker = open_ticket(cast)
    ticket = act(cast, services.start_ticket, open_ticket(cast))
    ticket = act(cast, services.add_blocker, ticket, number=blocker.number)
    act(cast, services.add_blocker, open_ticket(cast), number=ticket.number)
    page.sign_in("agent")
    shown = [page.get("ticket", number=ticket.number)[1]]
    shown += [
        page.do(ticket, action, version="x")[1]
        for action in (
            "reply",
            "note",
            "assign",
            "edit",
            "transition",
            "reminder",
            "block",
            "unblock",
        )
    ]

    for html in shown:
        ids = re.findall(r'\sid="([^"]+)"', html)
        assert len(ids) == len(set(ids)) > 8
        labels = re.findall(r'<label[^>]*for="([^"]+)"', html)
        assert set(labels) <= set(ids)


# --- What customers see -------------------------------------------------------------------------

TRACES = (
    "remind",
    "due",
    "overdue",
    "task",
    "notification",
    "internal",
    "secret",
    "assigned",
    "block",
    "wait",
)


def test_a_customer_sees_no_trace_of_reminders_notes_tasks_or_blockers(
    cast: Cast, page: Pages
) -> None:
    other = open_ticket(cast, by="second_customer", title="secret")
    ticket = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)
    ticket = act(cast, services.add_internal_note, ticket, body="A secret.")
    ticket = act(cast, services.schedule_reminder, ticket, minutes=5, note="secret")
    run(make_due(ticket))
    ticket.refresh_from_db()
    ticket = act(cast, services.add_blocker, ticket, number=other.number)
    link = TicketLink.objects.get()
    ticket = act(cast, services.remove_blocker, ticket, link_id=link.pk)
    ticket = act(cast, services.add_blocker, ticket, number=other.number)
    waiting = open_ticket(cast, by="second_customer", title="secret")
    act(cast, services.add_blocker, waiting, number=ticket.number)
    act(cast, services.reply_to_ticket, ticket, body="We are on it.")
    page.sign_in("customer")

    for name, arguments in (
        ("tickets", {}),
        ("ticket", {"number": ticket.number}),
        ("new-ticket", {}),
    ):
        status, html = page.get(name, **arguments)
        assert status == 200
        assert "countdown" not in html
        body = html[html.index("<body") :].lower()
        assert [trace for trace in TRACES if trace in body] == []
    assert "We are on it." in page.get("ticket", number=ticket.number)[1]


def test_a_customers_list_does_not_move_when_a_reminder_fires(cast: Cast, page: Pages) -> None:
    first, second = open_ticket(cast, title="First"), open_ticket(cast, title="Second")
    page.sign_in("customer")
    before = page.get("tickets")[1]

    run(make_due(first))

    after = page.get("tickets")[1]
    assert before.index("Second") < before.index("First")
    assert after.index("Second") < after.index("First")
    assert second.number > first.number


def test_a_customer_sees_their_own_tickets_only(cast: Cast, page: Pages) -> None:
    open_ticket(cast, title="Mine")
    open_ticket(cast, by="second_customer", title="Not mine")
    page.sign_in("customer")

    _, html = page.get("tickets")

    assert "Mine" in html
    assert "Not mine" not in html


@pytest.mark.parametrize("query", ["?overdue=on", "?assignee=none", "?assignee=me"])
def test_a_customer_cannot_ask_by_the_staffs_filters(cast: Cast, page: Pages, query: str) -> None:
    assigned = act(
        cast,
        services.assign_ticket,
        open_ticket(cast, title="Assigned"),
        membership_id=cast.agent.pk,
    )
    open_ticket(cast, title="Free")
    make_due(assigned)
    page.sign_in("customer")

    _, html = page.get("tickets", query)

    assert "Assigned" in html
    assert "Free" in html


def test_what_a_customer_writes_is_text_and_never_markup(cast: Cast, page: Pages) -> None:
    attack = "<script>alert(1)</script>"
    ticket = open_ticket(cast, title=attack, description=attack)
    act(cast, services.reply_to_ticket, ticket, by="customer", body=attack)
    page.sign_in("agent")

    for name, arguments in (("tickets", {}), ("ticket", {"number": ticket.number}), ("tasks", {})):
        html = page.get(name, **arguments)[1]
        assert attack not in html
        assert "&lt;script&gt;" in html


# --- The list -----------------------------------------------------------------------------------


@pytest.fixture
def several(cast: Cast) -> dict[str, Ticket]:
    """One ticket for each thing the filters tell apart."""
    tickets = {
        name: open_ticket(cast, title=f"Ticket {name}") for name in ("free", "mine", "theirs")
    }
    for name, who in (("mine", cast.agent), ("theirs", cast.second_agent)):
        tickets[name] = act(cast, services.assign_ticket, tickets[name], membership_id=who.pk)
    tickets["mine"] = act(cast, services.start_ticket, tickets["mine"])
    make_due(tickets["theirs"])
    return tickets


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", {"free", "mine", "theirs"}),
        ("?status=IN_PROGRESS", {"mine"}),
        ("?status=active", {"free", "mine", "theirs"}),
        ("?status=CLOSED", set()),
        ("?assignee=me", {"mine"}),
        ("?assignee=none", {"free"}),
        ("?overdue=on", {"theirs"}),
        ("?overdue=on&assignee=me", set()),
        ("?status=NONSENSE&assignee=x&page=zzz", {"free", "mine", "theirs"}),
        ("?page=99999999999", {"free", "mine", "theirs"}),
    ],
)
def test_the_list_filters_by_its_address(
    cast: Cast, page: Pages, several: dict[str, Ticket], query: str, shown: set[str]
) -> None:
    page.sign_in("agent")

    status, html = page.get("tickets", query)

    assert status == 200
    assert {name for name in several if f"Ticket {name}" in html} == shown


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?status=&assignee=", "There are no tickets yet."),
        ("?status=CLOSED", "No ticket matches this filter."),
    ],
)
def test_an_empty_list_says_whether_the_filter_is_why(
    cast: Cast, page: Pages, query: str, said: str
) -> None:
    page.sign_in("agent")

    assert said in page.get("tickets", query)[1]


def test_the_list_filters_by_member(cast: Cast, page: Pages, several: dict[str, Ticket]) -> None:
    page.sign_in("agent")

    _, html = page.get("tickets", f"?assignee={cast.second_agent.pk}")

    assert {name for name in several if f"Ticket {name}" in html} == {"theirs"}


def test_a_fired_reminder_stays_in_the_overdue_list_until_somebody_acts(
    cast: Cast, page: Pages
) -> None:
    ticket = open_ticket(cast)
    run(make_due(ticket))
    page.sign_in("agent")
    assert ticket.title in page.get("tickets", "?overdue=on")[1]

    ticket.refresh_from_db()
    act(cast, services.schedule_reminder, ticket, minutes=60)

    assert ticket.title not in page.get("tickets", "?overdue=on")[1]


def test_the_list_has_pages(cast: Cast, page: Pages) -> None:
    for number in range(27):
        open_ticket(cast, title=f"Ticket number {number}")
    page.sign_in("agent")

    first, second = page.get("tickets")[1], page.get("tickets", "?page=2")[1]

    assert (first.count("Ticket number"), second.count("Ticket number")) == (25, 2)


def count_queries(page: Pages, name: str, **arguments: Any) -> int:
    page.get(name, **arguments)  # What is cached for good is cached now.
    with CaptureQueriesContext(connection) as captured:
        assert page.get(name, **arguments)[0] == 200
    return len(captured)


def test_no_page_costs_more_queries_for_more_rows(cast: Cast, page: Pages) -> None:
    ticket = open_ticket(cast)
    page.sign_in("agent")
    places: list[tuple[str, dict[str, Any]]] = [
        ("tickets", {}),
        ("ticket", {"number": ticket.number}),
        ("tasks", {}),
        ("task", {"task_id": Task.objects.get(ticket=ticket).pk}),
    ]
    few = [count_queries(page, name, **arguments) for name, arguments in places]

    for number in range(8):
        other = open_ticket(cast, by="second_customer")
        act(cast, services.assign_ticket, other, membership_id=cast.second_agent.pk)
        ticket = act(cast, services.reply_to_ticket, ticket, by="customer", body=f"Reply {number}")
        ticket = act(cast, services.add_internal_note, ticket, by="admin", body=f"Note {number}")
        ticket = act(cast, services.add_blocker, ticket, number=other.number)
        act(cast, services.add_blocker, open_ticket(cast), number=ticket.number)

    assert [count_queries(page, name, **arguments) for name, arguments in places] == few
    # One of them counts the findings that wait for a decision.
    assert max(few) <= 16


# --- Getting in, getting around -----------------------------------------------------------------


def test_signing_in_leads_to_the_first_team_and_signing_out_back(
    cast: Cast, client: Client
) -> None:
    agent = cast.user("agent")
    agent.set_password("correct horse")
    agent.save(update_fields=["password"])

    wrong = client.post("/sign-in/", {"username": "agent", "password": "nope"})
    assert "do not match" in wrong.content.decode()
    answer = client.post(
        "/sign-in/", {"username": "agent", "password": "correct horse"}, follow=True
    )
    assert answer.redirect_chain[-1][0] == "/t/support/tickets/"
    assert client.get("/sign-out/").status_code == 405
    assert client.post("/sign-out/").headers["Location"] == "/sign-in/"
    assert client.get("/t/support/tickets/").status_code == 302


def test_with_no_team_the_start_page_says_what_to_do(client: Client, cast: Cast) -> None:
    client.force_login(UserFactory())

    answer = client.get("/")

    assert answer.status_code == 200
    assert "You are in no team yet" in answer.content.decode()


def test_the_team_switch_shows_the_teams_of_the_person(cast: Cast, page: Pages) -> None:
    services.add_member(
        team_id=cast.other_team.pk,
        actor_id=cast.user("stranger").pk,
        user_id=cast.user("agent").pk,
        role="CUSTOMER",
    )
    page.sign_in("agent")

    _, html = page.get("tickets")

    assert '/t/elsewhere/tickets/"' in html


def test_pages_speak_chinese_when_the_browser_does_or_the_person_says_so(
    cast: Cast, page: Pages
) -> None:
    page.sign_in("agent")
    assert (
        "工单"
        in page.client.get(
            page.url("tickets"), headers={"accept-language": "zh-CN"}
        ).content.decode()
    )

    page.client.post("/language/", {"language": "zh-hans", "next": "/"})
    _, html = page.get("tickets")
    assert '<html lang="zh-hans">' in html
    assert "工单" in html


def test_the_language_can_be_chosen_before_signing_in(client: Client, db: None) -> None:
    answer = client.post("/language/", {"language": "zh-hans", "next": "/sign-in/"}, follow=True)

    assert answer.redirect_chain == [("/sign-in/", 302)]
    assert "登录" in answer.content.decode()


@pytest.mark.parametrize("address", ["https://elsewhere.example/", "//elsewhere.example/"])
def test_no_address_leads_out_of_the_helpdesk(cast: Cast, client: Client, address: str) -> None:
    agent = cast.user("agent")
    agent.set_password("correct horse")
    agent.save(update_fields=["password"])
    form = {"username": "agent", "password": "correct horse", "next": address}

    assert client.post("/sign-in/", form).headers["Location"] == "/"
    answer = client.post("/language/", {"language": "en", "next": address})
    assert "elsewhere" not in answer.headers["Location"]
