"""Failures: everything rolls back, the attempt is counted, the next one comes later, the last one is final."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings

from helpdesk.clock import database_now
from helpdesk.errors import Busy, InvalidTransition, NotAllowed, NotFound
from notifications import services as notices
from notifications.models import ReminderNotification
from reminders import processor
from reminders.models import Task
from reminders.services import retry_task
from tests.cast import Cast
from tests.factories import act, make_due, open_ticket, run
from tickets import services
from tickets.models import Ticket, TicketEvent


class Broken(Exception):
    """What the tests inject."""


@pytest.fixture
def break_delivery(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Fail where the event and the version are written already and the notices are about to be."""

    def fail(*_args: object, **_kwargs: object) -> None:
        assert TicketEvent.objects.filter(kind="TIMEOUT_REMINDED").exists()
        raise Broken("disk full")

    monkeypatch.setattr(notices, "deliver", fail)
    return monkeypatch


def due_task(cast: Cast) -> Task:
    ticket = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)
    return make_due(ticket)


def fail_once(task: Task) -> None:
    """One more failing attempt, its backoff waited out."""
    Task.objects.filter(pk=task.pk).update(available_at=task.due_at)
    run(task)
    task.refresh_from_db()


def test_a_failure_after_the_event_was_written_rolls_all_back_and_counts(
    cast: Cast, break_delivery: pytest.MonkeyPatch
) -> None:
    task = due_task(cast)
    version = task.ticket.version
    before = database_now()

    run(task)

    assert not ReminderNotification.objects.exists()
    assert not TicketEvent.objects.filter(kind="TIMEOUT_REMINDED").exists()
    assert Ticket.objects.get(pk=task.ticket_id).version == version
    task.refresh_from_db()
    assert (task.status, task.attempts, task.run) == ("WAITING", 1, 1)
    assert task.last_error == "Broken: disk full"
    assert task.execution_id is None
    assert before < task.available_at - settings.REMINDER_BACKOFF < database_now()

    break_delivery.undo()
    Task.objects.filter(pk=task.pk).update(available_at=task.due_at)
    run(task)

    task.refresh_from_db()
    assert (task.status, task.last_error) == ("COMPLETED", "")
    assert ReminderNotification.objects.count() == 1
    assert TicketEvent.objects.filter(kind="TIMEOUT_REMINDED").count() == 1
    assert Ticket.objects.get(pk=task.ticket_id).version == version + 1


def test_the_wait_doubles_up_to_a_cap() -> None:
    first, second, third = (processor.backoff(attempts) for attempts in (1, 2, 3))

    assert (second, third) == (2 * first, 4 * first)
    assert processor.backoff(50) == settings.REMINDER_BACKOFF_CAP


def test_after_the_last_attempt_the_task_has_failed_and_nothing_tries_it_again(
    cast: Cast, break_delivery: pytest.MonkeyPatch
) -> None:
    task = due_task(cast)

    for _attempt in range(settings.REMINDER_MAX_ATTEMPTS):
        assert task.status == "WAITING"
        fail_once(task)

    assert (task.status, task.attempts) == ("FAILED", settings.REMINDER_MAX_ATTEMPTS)
    assert task.last_error == "Broken: disk full"
    assert task.finished_at is not None
    assert list(task.transitions.values_list("cause", flat=True))[-2:] == ["CLAIMED", "GAVE_UP"]


def failed_task(cast: Cast) -> Task:
    task = due_task(cast)
    Task.objects.filter(pk=task.pk).update(status="FAILED", attempts=5, last_error="disk full")
    task.refresh_from_db()
    return task


def test_a_person_retries_a_failed_task_with_the_next_run_and_it_fires(cast: Cast) -> None:
    task = failed_task(cast)

    run_number = retry_task(
        team_id=cast.team.pk, task_id=task.pk, actor_id=cast.user("second_agent").pk
    )

    task.refresh_from_db()
    assert run_number == 2
    assert (task.status, task.run, task.attempts) == ("WAITING", 2, 0)
    last = task.transitions.last()
    assert last is not None
    assert (last.cause, last.run, last.actor) == ("RETRIED", 2, cast.user("second_agent"))

    processor.process(team_id=task.team_id, hints=[(task.pk, 1)])  # A message of the old run.
    assert Task.objects.get(pk=task.pk).status == "WAITING"

    run(task)
    assert ReminderNotification.objects.count() == 1


def test_only_a_failed_task_can_be_retried(cast: Cast) -> None:
    task = due_task(cast)

    with pytest.raises(InvalidTransition):
        retry_task(team_id=cast.team.pk, task_id=task.pk, actor_id=cast.user("agent").pk)

    assert Task.objects.get(pk=task.pk).run == 1


def test_a_retry_does_not_make_a_second_active_task_for_one_reminder(cast: Cast) -> None:
    task = failed_task(cast)
    copy = Task.objects.get(pk=task.pk)
    copy.pk, copy.status = None, "WAITING"
    copy.save(force_insert=True)

    with pytest.raises(InvalidTransition, match="already active"):
        retry_task(team_id=cast.team.pk, task_id=task.pk, actor_id=cast.user("agent").pk)

    assert Task.objects.get(pk=task.pk).status == "FAILED"


@pytest.mark.parametrize(("who", "error"), [("customer", NotAllowed), ("stranger", NotFound)])
def test_only_staff_of_the_team_may_retry(cast: Cast, who: str, error: type[Exception]) -> None:
    task = failed_task(cast)

    with pytest.raises(error):
        retry_task(team_id=cast.team.pk, task_id=task.pk, actor_id=cast.user(who).pk)

    assert Task.objects.get(pk=task.pk).status == "FAILED"


def test_the_task_of_another_team_does_not_exist(cast: Cast) -> None:
    task = failed_task(cast)

    with pytest.raises(NotFound):
        retry_task(team_id=cast.other_team.pk, task_id=task.pk, actor_id=cast.user("stranger").pk)


def test_a_retried_task_whose_reminder_was_cancelled_is_skipped(cast: Cast) -> None:
    task = failed_task(cast)
    ticket = Ticket.objects.get(pk=task.ticket_id)
    act(cast, services.schedule_reminder, ticket, minutes=None)
    retry_task(team_id=cast.team.pk, task_id=task.pk, actor_id=cast.user("agent").pk)
    task.refresh_from_db()

    run(task)

    task.refresh_from_db()
    assert task.result_summary == "Skipped: the reminder was cancelled."
    assert not ReminderNotification.objects.exists()


def test_a_retry_within_the_backoff_waits_for_its_time(
    cast: Cast, break_delivery: pytest.MonkeyPatch
) -> None:
    task = due_task(cast)
    run(task)
    task.refresh_from_db()

    with pytest.raises(processor.NotDueYet):
        run(task)

    attempts = task.attempts
    task.refresh_from_db()
    assert (task.status, task.attempts) == ("WAITING", attempts)
    assert task.available_at > database_now() + timedelta(seconds=1)


def test_a_team_that_is_held_too_long_costs_no_attempt_and_the_hints_come_again(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [due_task(cast) for _ in range(2)]

    @contextmanager
    def held(team_id: int) -> Iterator[None]:
        raise Busy
        yield

    with monkeypatch.context() as patch:
        patch.setattr(processor, "locked_team", held)
        with pytest.raises(processor.TeamBusy):
            run(*tasks)
    assert set(Task.objects.values_list("status", "attempts")) == {("RUNNING", 0)}

    run(*tasks)

    assert set(Task.objects.values_list("status", "attempts")) == {("COMPLETED", 0)}
    assert ReminderNotification.objects.count() == 2
