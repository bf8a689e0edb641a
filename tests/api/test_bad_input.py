"""Whatever comes in, a problem document goes out: never a 500, never a page, and nothing is changed."""

import json
from typing import Any

import pytest
from django.urls import get_resolver

from helpdesk.errors import Busy
from tests.api.conftest import Api, As, at, problem
from tests.cast import Cast
from tests.factories import open_ticket
from tickets import services
from tickets.models import Comment, Ticket

TICKETS = "teams/support/tickets/"
WHOLE = {"title": "Title", "description": "Text"}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"nonsense",
        b"NaN",
        b'{"title": NaN, "description": "x"}',
        b"\xff\xfe",
        b'{"title": "\\ud800", "description": "x"}',
        b'{"\\ud800": 1}',
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"title": ' + b"9" * 5000 + b"}",
        b"null",
        b"[]",
        b'"text"',
        b"1",
        b"true",
    ],
    ids=lambda raw: repr(raw[:20]),
)
def test_a_body_that_is_no_json_object(agent: Api, raw: bytes) -> None:
    answer = agent("POST", TICKETS, raw=raw)
    assert answer.status_code == 400, answer.json()
    assert answer["Content-Type"] == "application/problem+json"
    assert not Ticket.objects.exists()


@pytest.mark.parametrize(
    "value", [None, 1, 1.5, True, [], {}, [1], {"a": 1}, "", "   ", "\x00", "a\x00b"], ids=repr
)
@pytest.mark.parametrize("field", ["title", "description", "priority"])
def test_a_value_of_another_type_is_a_field_error(agent: Api, field: str, value: Any) -> None:
    said = problem(agent.post(TICKETS, {**WHOLE, field: value}), 400, "invalid-input")
    assert set(said["errors"]) == {field}
    assert not Ticket.objects.exists()


def test_a_typo_is_no_silent_no_op(agent: Api) -> None:
    said = problem(agent.post(TICKETS, {**WHOLE, "prioritty": "HIGH"}), 400, "invalid-input")
    assert said["errors"] == {"prioritty": ["There is no such field."]}


def test_what_was_wrong_is_said_in_the_readers_language(agent: Api) -> None:
    said = problem(
        agent.post(TICKETS, {**WHOLE, "x": 1}, Accept_Language="zh-hans"), 400, "invalid-input"
    )
    assert said["errors"]["x"] != ["There is no such field."]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=101",
        "limit=x",
        "limit=-1",
        "limit=1e1",
        "limit=١",
        f"limit={'9' * 5000}",
        "cursor=x",
        "cursor=%00",
        "cursor=Wy0xXQ==",
        "cursor=W251bGxd",
        "cursor=WzEuNV0=",
        "cursor=W3RydWVd",
        "cursor=WzEsMl0=",
        "cursor=é",
        "status=NOPE",
        "status=",
        "priority=NOPE",
        "assignee=you",
        "assignee=-1",
        f"assignee={'9' * 40}",
        "creator=x",
        "overdue=yes",
        "overdue=1",
        "due_before=tomorrow",
        "due_before=0001-01-01T00:00:00%2B23:59",
        "due_after=9999-12-31T23:59:59-23:59",
        "updated_since=2026-13-01",
        "search=%00",
        f"search={'x' * 201}",
        "order=title",
        "order=number&order=-number",
        "limit=1&limit=2",
        "sort=number",
        "&".join(f"status=OPEN{n}" for n in range(1200)),
        "order=updated_at&cursor=WzEsIngiLCJ5Il0=",
        "order=updated_at&cursor=WzEsIjIwMjYtMDEtMDEiLCIyMDI2LTAxLTAxIl0=",
    ],
    ids=lambda query: query[:40],
)
def test_a_query_that_makes_no_sense(agent: Api, query: str) -> None:
    problem_or_bad = agent.get(f"{TICKETS}?{query}")
    assert problem_or_bad.status_code == 400, problem_or_bad.json()
    assert problem_or_bad["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "nothing/",
        "me",
        "teams/",
        "teams/support/",
        "teams/nowhere/tickets/",
        "teams/support/tickets/0/",
        "teams/support/tickets/999999999999999999/",
        "teams/support/tickets/9999999999999999999999/",
        "teams/support/tickets/-1/",
        "teams/support/tickets/x/",
        "teams/support/tasks/999999999999999999/",
        "teams/support%00/tickets/",
        "/api/",
        "/api/v2/me/",
    ],
)
def test_what_does_not_exist_is_a_problem(cast: Cast, by: As, path: str) -> None:
    problem(by("admin").get(path), 404, "not-found")


def test_without_a_token_there_is_a_challenge(by: As) -> None:
    answer = by("").get("me/")
    problem(answer, 401, "not-authenticated")
    assert answer["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer x",
        "Bearer a b",
        "Basic YTpi",
        "Bearer \xff",
        "Bearer é",
        "Token x",
        "x" * 5000,
    ],
)
def test_a_header_that_is_no_token(by: As, header: str, cast: Cast) -> None:
    problem(by("").get("me/", Authorization=header), 401, "not-authenticated")


def test_other_methods_media_types_and_sizes(cast: Cast, agent: Api, settings: Any) -> None:
    answer = agent("PUT", TICKETS, WHOLE)
    problem(answer, 405, "method-not-allowed")
    assert answer["Allow"] == "GET, HEAD, POST"
    problem(agent("OPTIONS", TICKETS), 405, "method-not-allowed")
    problem(agent.get(TICKETS, Accept="text/html"), 406, "not-acceptable")
    form = agent.client.post(f"/api/v1/{TICKETS}", WHOLE, headers=agent.headers)
    problem(form, 415, "unsupported-media-type")
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    assert agent.post(TICKETS, {**WHOLE, "title": "x" * 200}).status_code == 413
    assert not Ticket.objects.exists()


@pytest.mark.parametrize("key", ["", " ", "a b", "é", "x" * 201, "\x7f"])
def test_an_idempotency_key_that_is_none(agent: Api, key: str) -> None:
    said = problem(agent.post(TICKETS, WHOLE, Idempotency_Key=key), 400, "invalid-input")
    assert set(said["errors"]) == {"Idempotency-Key"}


@pytest.mark.parametrize("debug", [True, False])
def test_what_nobody_expected_is_logged_and_a_problem(
    cast: Cast,
    agent: Api,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    settings: Any,
    debug: bool,
) -> None:
    settings.DEBUG = debug

    def broken(**_arguments: Any) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(services, "create_ticket", broken)
    answer = agent.post(TICKETS, WHOLE)
    problem(answer, 500, "server-error")
    assert "secret" not in answer.content.decode()
    assert "api.error" in caplog.text


def test_a_busy_team_says_when_to_try_again(
    cast: Cast, agent: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(**_arguments: Any) -> None:
        raise Busy

    monkeypatch.setattr(services, "create_ticket", busy)
    answer = agent.post(TICKETS, WHOLE)
    problem(answer, 503, "busy")
    assert answer["Retry-After"] == "1"


def test_what_fails_outside_of_a_view_is_a_problem_too(cast: Cast, agent: Api) -> None:
    answer = agent.client.get("/api/v1/me/", headers={**agent.headers, "Host": "evil.example"})
    problem(answer, 400, "bad-request")
    handler = get_resolver().resolve_error_handler(500)
    request = type("Request", (), {"path": "/api/v1/me/"})()
    assert json.loads(handler(request).content)["status"] == 500


def test_a_closed_ticket_takes_no_comment_and_says_so(cast: Cast, agent: Api) -> None:
    ticket = open_ticket(cast)
    for number, step in enumerate(("IN_PROGRESS", "RESOLVED", "CLOSED")):
        agent.post(at(ticket, "transition/"), {"to": step, "note": "x", "version": number})
    said = problem(agent.post(at(ticket, "comments/"), {"body": "Hi"}), 409, "invalid-transition")
    assert said["ticket"]["status"] == "CLOSED"
    assert not Comment.objects.exists()
