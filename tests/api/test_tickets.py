"""The main job over the API: open, find, change, and the same refusals as the pages."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reminders.models import Task
from tests.api.conftest import Api, As, at, problem
from tests.cast import Cast
from tests.factories import act, make_due, open_ticket, run
from tickets import services
from tickets.models import Comment, Ticket, TicketLink


def test_a_ticket_is_opened_set_assigned_and_resolved(cast: Cast, by: As, agent: Api) -> None:
    opened = by("customer").post(
        "teams/support/tickets/", {"title": "Printer on fire", "description": "It burns."}
    )
    assert opened.status_code == 201, opened.json()
    number = opened.json()["number"]
    address = f"teams/support/tickets/{number}/"

    ticket = agent.get(address)
    assert ticket["ETag"] == '"0"'
    assert (ticket.json()["version"], ticket.json()["priority"]) == (0, "NORMAL")

    answer = agent.post(f"{address}assign/", {"membership": cast.agent.pk, "version": 0})
    assert answer.json()["assignee"]["user"]["username"] == "agent"
    answer = agent.post(f"{address}schedule/", {"minutes": 45, "note": "Call"}, If_Match='"1"')
    body = answer.json()
    assert (body["version"], body["reminder_revision"], answer["ETag"]) == (2, 1, '"2"')
    assert body["reminder"]["would_reach"] == [
        {"user": cast.user("agent").pk, "name": "agent", "why": "ASSIGNEE"}
    ]
    due = datetime.fromisoformat(body["due_at"])
    assert body["due_at"].endswith("Z")
    assert abs(due - datetime.now(UTC) - timedelta(minutes=45)) < timedelta(seconds=10)
    agent.post(f"{address}transition/", {"to": "IN_PROGRESS", "version": 2})
    done = agent.post(f"{address}transition/", {"to": "RESOLVED", "note": "Out.", "version": 3})
    assert (done.status_code, done.json()["status"], done.json()["due_at"]) == (
        200,
        "RESOLVED",
        None,
    )
    assert not Task.objects.filter(status="WAITING").exists()


def test_title_description_and_priority_are_changed_on_a_version(cast: Cast, agent: Api) -> None:
    ticket = open_ticket(cast)
    answer = agent.patch(
        at(ticket), {"title": "New", "description": "Other", "priority": "HIGH", "version": 0}
    )
    assert answer.status_code == 200, answer.json()
    ticket.refresh_from_db()
    assert (ticket.title, ticket.description, ticket.priority) == ("New", "Other", "HIGH")
    history = agent.get(at(ticket, "events/")).json()["results"]
    assert [each["kind"] for each in history] == ["CREATED", "EDITED"]
    assert "Description changed" in history[1]["text"]


@pytest.mark.parametrize("minutes", [0, -1, 10081, 1.5, True, "60", "", [], {}, 10**30], ids=repr)
def test_minutes_are_a_whole_number_in_range(cast: Cast, agent: Api, minutes: Any) -> None:
    ticket = open_ticket(cast)
    answer = agent.post(at(ticket, "schedule/"), {"minutes": minutes, "version": 0})
    assert set(problem(answer, 400, "invalid-input")["errors"]) == {"minutes"}
    ticket.refresh_from_db()
    assert ticket.version == 0


def test_null_cancels_the_reminder(cast: Cast, agent: Api) -> None:
    ticket = open_ticket(cast)
    answer = agent.post(at(ticket, "schedule/"), {"minutes": None, "version": 0})
    assert (answer.json()["due_at"], answer.json()["reminder_revision"]) == (None, 1)


@pytest.mark.parametrize(
    ("rest", "body"),
    [
        ("", {"title": "New"}),
        ("schedule/", {"minutes": 5}),
        ("transition/", {"to": "IN_PROGRESS"}),
        ("assign/", {"membership": None}),
        ("links/", {"blocker": 2}),
    ],
)
class TestVersions:
    def call(self, api: Api, ticket: Ticket, rest: str, body: Any, **headers: str) -> Any:
        return api("POST" if rest else "PATCH", at(ticket, rest), body, **headers)

    def test_without_a_version_nothing_is_written(
        self, cast: Cast, agent: Api, rest: str, body: Any
    ) -> None:
        ticket, _blocker = open_ticket(cast), open_ticket(cast)
        said = problem(self.call(agent, ticket, rest, body), 400, "invalid-input")
        assert set(said["errors"]) == {"version"}

    def test_a_conflict_has_all_that_is_needed_to_go_on(
        self, cast: Cast, agent: Api, rest: str, body: Any
    ) -> None:
        ticket, _blocker = open_ticket(cast), open_ticket(cast)
        act(cast, services.reply_to_ticket, ticket, body="Meanwhile.")
        said = problem(
            self.call(agent, ticket, rest, {**body, "version": 0}), 409, "version-conflict"
        )
        assert said["current_version"] == said["ticket"]["version"] == 1
        again = self.call(agent, ticket, rest, {**body, "version": said["current_version"]})
        assert again.status_code in (200, 201), again.json()

    @pytest.mark.parametrize(
        "tag", ["7", '""', 'W/"0"', "*", '"x"', '"0', '"-1"', '"1e3"', f'"{10**20}"']
    )
    def test_a_tag_that_is_none_is_refused(
        self, cast: Cast, agent: Api, rest: str, body: Any, tag: str
    ) -> None:
        ticket = open_ticket(cast)
        problem(self.call(agent, ticket, rest, body, If_Match=tag), 400, "invalid-input")

    def test_body_and_header_have_to_agree(
        self, cast: Cast, agent: Api, rest: str, body: Any
    ) -> None:
        ticket = open_ticket(cast)
        answer = self.call(agent, ticket, rest, {**body, "version": 0}, If_Match='"1"')
        problem(answer, 400, "invalid-input")


def test_a_step_that_is_not_possible_is_a_conflict_with_the_ticket(cast: Cast, agent: Api) -> None:
    ticket = open_ticket(cast)
    answer = agent.post(at(ticket, "transition/"), {"to": "CLOSED", "version": 0})
    assert problem(answer, 409, "invalid-transition")["ticket"]["status"] == "OPEN"


def test_a_blocker_is_added_named_and_removed(cast: Cast, agent: Api) -> None:
    ticket, blocker = open_ticket(cast), open_ticket(cast, title="Extinguisher")
    added = agent.post(at(ticket, "links/"), {"blocker": blocker.number, "version": 0})
    assert (added.status_code, added.json()["version"]) == (201, 1)
    assert agent.get(at(ticket, "links/")).json()["results"] == [
        {
            "direction": "BLOCKED_BY",
            "number": blocker.number,
            "title": "Extinguisher",
            "status": "OPEN",
        }
    ]
    assert agent.get(at(blocker, "links/")).json()["results"][0]["direction"] == "BLOCKS"
    agent.post(at(ticket, "transition/"), {"to": "IN_PROGRESS", "version": 1})
    refused = agent.post(
        at(ticket, "transition/"), {"to": "RESOLVED", "note": "Done", "version": 2}
    )
    assert problem(refused, 409, "invalid-transition")["blockers"] == [blocker.number]
    removed = agent.delete(at(ticket, f"links/{blocker.number}/"), If_Match='"2"')
    assert removed.json()["version"] == 3
    assert not TicketLink.objects.exists()
    again = agent.delete(at(ticket, f"links/{blocker.number}/"), If_Match='"3"')
    problem(again, 404, "not-found")


@pytest.mark.parametrize("blocker", [1, 99])
def test_a_blocker_that_cannot_be_one_is_a_field_error(
    cast: Cast, agent: Api, blocker: int
) -> None:
    ticket = open_ticket(cast)
    answer = agent.post(at(ticket, "links/"), {"blocker": blocker, "version": 0})
    assert set(problem(answer, 400, "invalid-input")["errors"]) == {"blocker"}


def test_comments_answer_with_the_ticket_as_it_is_now(cast: Cast, by: As, agent: Api) -> None:
    ticket = open_ticket(cast)
    note = agent.post(at(ticket, "comments/"), {"body": "Hm.", "internal": True})
    assert note.status_code == 201
    assert (note.json()["internal"], note.json()["ticket"]["version"]) == (True, 1)
    reply = by("customer").post(at(ticket, "comments/"), {"body": "Hello?"})
    assert reply.status_code == 201
    assert [each["body"] for each in agent.get(at(ticket, "comments/")).json()["results"]] == [
        "Hm.",
        "Hello?",
    ]
    refused = by("customer").post(at(ticket, "comments/"), {"body": "Hm.", "internal": True})
    problem(refused, 403, "not-allowed")
    assert Comment.objects.count() == 2


def test_customers_find_no_trace_of_reminders_notes_and_people(cast: Cast, by: As) -> None:
    """Neither a field nor a gap: what they read is the same as if none of it had happened."""
    ticket = open_ticket(cast)
    before = {
        path: by("customer").get(at(ticket, path)).content for path in ("", "comments/", "events/")
    } | {"list": by("customer").get("teams/support/tickets/").content}

    ticket = act(cast, services.assign_ticket, ticket, membership_id=cast.agent.pk)
    ticket = act(cast, services.schedule_reminder, ticket, minutes=5, note="Secret")
    ticket = act(cast, services.add_internal_note, ticket, body="Secret")
    run(make_due(ticket))

    answers = {path: by("customer").get(at(ticket, path)) for path in ("", "comments/", "events/")}
    assert "ETag" not in answers[""].headers
    after = {path: answer.content for path, answer in answers.items()}
    assert after | {"list": by("customer").get("teams/support/tickets/").content} == before


def test_what_became_of_a_reminder_is_told_with_its_proof(cast: Cast, agent: Api) -> None:
    ticket = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)
    task = make_due(ticket)
    run(task)

    fired = agent.get(at(ticket)).json()["reminder"]["fired"]
    assert (fired["names"], fired["proven"]) == (["agent"], True)
    (listed,) = agent.get("teams/support/tasks/").json()["results"]
    shown = agent.get(f"teams/support/tasks/{listed['id']}/").json()
    assert (shown["status"], shown["evidence"]["outcome"]) == ("COMPLETED", "fired")
    assert [each["cause"] for each in shown["transitions"]] == ["PLANNED", "CLAIMED", "FIRED"]
    (notice,) = agent.get("notifications/").json()["results"]
    assert (notice["team"], notice["ticket"], notice["why"], notice["read_at"]) == (
        "support",
        ticket.number,
        "ASSIGNEE",
        None,
    )
    assert agent.get("me/").json()["unread"] == 1
    read = agent.post(f"notifications/{notice['id']}/read/")
    assert read.json()["read_at"].endswith("Z")
    assert agent.get("me/").json()["unread"] == 0
