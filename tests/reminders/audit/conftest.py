"""Running the audit and seeing everything it leaves: rows, log lines, what changed."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.serializers.json import DjangoJSONEncoder

from notifications.models import ReminderNotification
from reminders.audit import runner
from reminders.audit.runner import Report
from reminders.models import Task, TaskTransition
from reminders.states import Trigger
from tickets.models import Ticket, TicketEvent

Audit = Callable[..., Report]
Lines = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def audit(django_capture_on_commit_callbacks: Any) -> Audit:
    """One audit, with what it does after its commits."""

    def run(**arguments: Any) -> Report:
        with django_capture_on_commit_callbacks(execute=True):
            return runner.audit(**{"trigger": Trigger.COMMAND, **arguments})

    return run


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Lines]:
    """The audit's log lines of an event, as their fields."""
    with caplog.at_level("INFO", logger="reminders.audit"):
        yield lambda event: [
            record.msg
            for record in caplog.records
            if isinstance(record.msg, dict) and record.msg["event"] == event
        ]


def everything() -> str:
    """All rows that the audit looks at, to compare."""
    return json.dumps(
        [
            list(model.objects.order_by("pk").values())
            for model in (Ticket, TicketEvent, Task, TaskTransition, ReminderNotification)
        ],
        cls=DjangoJSONEncoder,
    )
