"""The Celery entry points: one call each, and what becomes of its refusals."""

from datetime import timedelta
from typing import Any

import pytest
from celery.exceptions import Retry
from django.db import OperationalError

from helpdesk.clock import database_now
from notifications.models import ReminderNotification
from reminders import processor, tasks
from reminders.models import Task
from tests.cast import Cast
from tests.factories import make_due, open_ticket


def refuse(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def process(**_arguments: Any) -> None:
        raise error

    monkeypatch.setattr(processor, "process", process)


def test_a_message_fires_what_it_names(cast: Cast) -> None:
    task = make_due(open_ticket(cast))

    tasks.process.apply(args=[task.team_id, [[task.pk, task.run]]], throw=True)

    assert ReminderNotification.objects.count() == 1


@pytest.mark.parametrize(
    "error", [processor.TeamBusy(), OperationalError("the database is away")], ids=repr
)
def test_when_it_cannot_be_done_now_the_message_comes_again(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    refuse(monkeypatch, error)
    asked: list[dict[str, Any]] = []

    def retry(**options: Any) -> Retry:
        asked.append(options)
        return Retry()

    monkeypatch.setattr(tasks.process, "retry", retry)

    with pytest.raises(Retry):
        tasks.process(7, [[1, 1]])

    assert len(asked) == 1
    assert asked[0]["countdown"] < 2


def test_called_early_it_has_done_its_part(monkeypatch: pytest.MonkeyPatch, cast: Cast) -> None:
    refuse(monkeypatch, processor.NotDueYet(database_now() + timedelta(minutes=5)))

    assert tasks.process(7, [[1, 1]]) is None


def test_beat_publishes_and_recovers(cast: Cast) -> None:
    waiting, abandoned = make_due(open_ticket(cast)), make_due(open_ticket(cast))
    processor.claim(team_id=cast.team.pk, hints=[(abandoned.pk, 1)])
    Task.objects.filter(pk=abandoned.pk).update(lease_expires_at=database_now())

    tasks.recover()
    tasks.dispatch()

    for task in (waiting, abandoned):
        task.refresh_from_db()
        assert task.dispatched_at is not None
    assert (abandoned.status, abandoned.run) == ("WAITING", 2)
