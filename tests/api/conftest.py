"""Asking the API as somebody, and as nobody."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from knox.models import AuthToken

from tests.cast import Cast
from tickets.models import Ticket, User

V1 = "/api/v1/"


class Api:
    """A client of one person. Answers are Django's responses; `.json()` has the body."""

    def __init__(self, user: User | None = None) -> None:
        self.client = Client(raise_request_exception=False)
        self.headers = {}
        if user is not None:
            _token, secret = AuthToken.objects.create(user)
            self.headers["Authorization"] = f"Bearer {secret}"

    def __call__(
        self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, **headers: str
    ) -> Any:
        content = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.generic(
            method,
            path if path.startswith("/") else V1 + path,
            content,
            content_type="application/json",
            headers={**self.headers, **names},
        )

    def get(self, path: str, **headers: str) -> Any:
        return self("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self("POST", path, body, **headers)

    def patch(self, path: str, body: Any = None, **headers: str) -> Any:
        return self("PATCH", path, body, **headers)

    def delete(self, path: str, **headers: str) -> Any:
        return self("DELETE", path, **headers)


@pytest.fixture(autouse=True)
def quick_passwords(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


As = Callable[[str], Api]


@pytest.fixture
def by(cast: Cast) -> As:
    """The API as one of the cast; an empty name is nobody."""
    known: dict[str, Api] = {}

    def api(name: str) -> Api:
        if name not in known:
            known[name] = Api(cast.user(name) if name else None)
        return known[name]

    return api


@pytest.fixture
def agent(by: As) -> Api:
    return by("agent")


def at(ticket: Ticket, rest: str = "") -> str:
    """The address of a ticket of the cast's team."""
    return f"teams/support/tickets/{ticket.number}/{rest}"


def problem(answer: Any, status: int, kind: str) -> Any:
    """The problem, which is one in every respect."""
    body = answer.json()
    assert answer.status_code == status, body
    assert answer["Content-Type"] == "application/problem+json"
    assert body["type"] == f"urn:helpdesk:{kind}", body
    assert body["status"] == status
    assert body["title"]
    assert body["detail"]
    return body
