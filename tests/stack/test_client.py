"""A client that a generator built from the document and nothing else does the main job: set, wait, notified."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from tests.cast import Cast, make_cast
from tests.stack.conftest import Stack, wait_until

PASSWORD = "correct horse battery staple"

pytestmark = [pytest.mark.stack, pytest.mark.timeout(200)]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ExitStack]:
    """The package `helpdesk_client` can be imported; what is entered here is closed after the test."""
    options = tmp_path / "options.yml"
    options.write_text("post_hooks: []\n")
    subprocess.run(
        [
            *(Path(sys.executable).with_name("openapi-python-client"), "generate"),
            *("--path", settings.BASE_DIR / "docs" / "openapi.json", "--meta", "none"),
            *("--output-path", tmp_path / "helpdesk_client", "--config", options),
            "--fail-on-warning",
        ],
        check=True,
    )
    monkeypatch.syspath_prepend(tmp_path)
    with ExitStack() as stack:
        yield stack


class Generated:
    """The generated client of one person, signed in. Operations by tag and name."""

    def __init__(self, opened: ExitStack, address: str, username: str) -> None:
        package: Any = import_module("helpdesk_client")
        self.models: Any = import_module("helpdesk_client.models")
        asked = self.models.SignInInput(username=username, password=PASSWORD)
        with package.Client(address) as anonymous:
            token = self._call("session", "sign_in", client=anonymous, body=asked)
        client = package.AuthenticatedClient(address, token.token)
        self._client = opened.enter_context(client)

    def do(self, tag: str, name: str, *names: Any, **arguments: Any) -> Any:
        return self._call(tag, name, *names, client=self._client, **arguments)

    def _call(self, tag: str, name: str, *names: Any, **arguments: Any) -> Any:
        module = import_module(f"helpdesk_client.api.{tag}.{name}")
        answer = module.sync(*names, **arguments)
        assert answer is not None
        return answer


@pytest.mark.usefixtures("transactional_db")
def test_a_generated_client_sets_waits_and_is_notified(stack: Stack, opened: ExitStack) -> None:
    cast: Cast = make_cast()
    for name in ("customer", "agent", "second_agent"):
        user = cast.user(name)
        user.set_password(PASSWORD)
        user.save(update_fields=["password"])
    stack.worker()
    stack.beat()
    address = stack.web()

    customer = Generated(opened, address, "customer")
    models = customer.models
    asked = models.NewTicketInput(title="Printer on fire", description="It burns.")
    number = customer.do("tickets", "create_ticket", "support", body=asked).number

    agent = Generated(opened, address, "agent")
    seen = agent.do("tickets", "get_ticket", "support", number)
    me = agent.do("session", "me").memberships[0]
    taken = agent.do(
        "tickets",
        "assign_ticket",
        "support",
        number,
        body=models.AssignInput(membership=me.id, version=seen.version),
    )
    planned = agent.do(
        "tickets",
        "schedule_reminder",
        "support",
        number,
        body=models.ScheduleInput(minutes=1, note="Call back", version=taken.version),
    )
    assert planned.due_at is not None

    # Somebody who has not seen that learns from the refusal alone what to do, and does it.
    other = Generated(opened, address, "second_agent")
    mine = other.do("session", "me").memberships[0].id
    assignment = models.AssignInput(membership=mine, version=seen.version)
    refused = other.do("tickets", "assign_ticket", "support", number, body=assignment)
    assert isinstance(refused, models.TicketConflict)
    assert refused.ticket.assignee.id == me.id
    assignment.version = refused.current_version
    other.do("tickets", "assign_ticket", "support", number, body=assignment)

    notified = wait_until(
        lambda: other.do("notifications", "list_notifications").results,
        "the one who is responsible when it is due is notified",
        within=90,
    )

    assert [(each.ticket, each.note) for each in notified] == [(number, "Call back")]
    assert notified[0].created_at >= planned.due_at
    assert agent.do("notifications", "list_notifications").results == []
    other.do("notifications", "read_notification", notified[0].id)
    assert other.do("session", "me").unread == 0
