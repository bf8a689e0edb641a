"""Tasks whose worker is gone."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings

from helpdesk.clock import database_now
from notifications.models import ReminderNotification
from reminders import processor
from reminders.models import Task
from reminders.recovery import recover_expired
from tests.cast import Cast
from tests.factories import make_due, open_ticket, run


def abandoned(cast: Cast, *, expired: bool = True, **fields: Any) -> Task:
    """A task that a worker claimed and never finished."""
    task = make_due(open_ticket(cast))
    assert processor.claim(team_id=task.team_id, hints=[(task.pk, task.run)])
    when = database_now() + timedelta(seconds=-1 if expired else 60)
    Task.objects.filter(pk=task.pk).update(lease_expires_at=when, **fields)
    task.refresh_from_db()
    return task


def test_an_expired_lease_goes_back_to_the_queue_with_the_next_run_and_fires(cast: Cast) -> None:
    task = abandoned(cast)

    assert recover_expired() == 1

    task.refresh_from_db()
    assert (task.status, task.run, task.attempts) == ("WAITING", 2, 1)
    assert (task.execution_id, task.lease_expires_at, task.dispatched_at) == (None, None, None)
    last = task.transitions.last()
    assert last is not None
    assert (last.cause, last.run) == ("LEASE_EXPIRED", 2)

    run(task)
    assert ReminderNotification.objects.count() == 1


def test_a_lease_that_has_not_expired_is_left_alone(cast: Cast) -> None:
    task = abandoned(cast, expired=False)

    assert recover_expired() == 0
    assert Task.objects.get(pk=task.pk).status == "RUNNING"


def test_a_message_of_the_old_run_means_nothing_any_more(cast: Cast) -> None:
    task = abandoned(cast)
    recover_expired()

    processor.process(team_id=task.team_id, hints=[(task.pk, 1)])

    assert not ReminderNotification.objects.exists()


def test_a_task_that_kills_every_worker_does_not_go_round_for_ever(cast: Cast) -> None:
    task = abandoned(cast, attempts=settings.REMINDER_MAX_ATTEMPTS - 1)

    recover_expired()

    task.refresh_from_db()
    assert (task.status, task.run, task.attempts) == ("FAILED", 1, 5)
    assert "lease expired" in task.last_error


def test_recovered_tasks_are_published_at_the_commit(
    cast: Cast, django_capture_on_commit_callbacks: Any
) -> None:
    task = abandoned(cast)

    recover_expired()
    task.refresh_from_db()
    assert task.dispatched_at is None
    task = abandoned(cast)
    with django_capture_on_commit_callbacks(execute=True):
        recover_expired()

    task.refresh_from_db()
    assert task.dispatched_at is not None


@pytest.mark.parametrize("count", [1, 3])
def test_many_are_recovered_in_as_many_queries_as_one(
    cast: Cast, count: int, django_assert_num_queries: Any
) -> None:
    for _ in range(count):
        abandoned(cast)

    with django_assert_num_queries(5):
        assert recover_expired() == count
