"""Two executors and one task: one takes the lease over, the other must leave nothing behind."""

import uuid
from typing import Any

import pytest
from django.db import connection

from notifications import services as notices
from notifications.models import ReminderNotification
from reminders import moves, processor
from reminders.models import Task
from reminders.recovery import recover_expired
from tests.cast import Cast, make_cast
from tests.factories import act, make_due, open_ticket
from tests.races.conftest import TIMEOUT, Pause, Threads
from tickets import services
from tickets.models import Ticket, TicketEvent


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


def due_task(cast: Cast) -> Task:
    ticket = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)
    return make_due(ticket)


def claim(task: Task) -> uuid.UUID:
    lease = processor.claim(team_id=task.team_id, hints=[(task.pk, task.run)])
    assert lease is not None
    return lease


def settle(lease: uuid.UUID, *tasks: Task) -> None:
    processor.settle(team_id=tasks[0].team_id, task_ids=[task.pk for task in tasks], lease=lease)


def assert_fired_once(*tasks: Task) -> None:
    for task in tasks:
        task.refresh_from_db()
        assert (task.status, task.attempts, task.last_error) == ("COMPLETED", 0, "")
        assert ReminderNotification.objects.filter(ticket=task.ticket_id).count() == 1
        events = TicketEvent.objects.filter(ticket=task.ticket_id, kind="TIMEOUT_REMINDED")
        assert [event.version for event in events] == [2]
        assert Ticket.objects.get(pk=task.ticket_id).version == 2


def fired_by(task: Task) -> uuid.UUID | None:
    return task.transitions.get(cause="FIRED").execution_id


def test_taken_over_before_the_commit_the_first_rolls_everything_back(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = due_task(cast)
    pause = Pause(monkeypatch, notices, "deliver", after=True)  # All is written but the task.
    first = claim(task)
    loser = threads.start(lambda: settle(first, task))
    pause.wait()

    second = claim(task)
    winner = threads.start(lambda: settle(second, task))
    threads.wait_until_blocked()  # On the team, which the loser still holds.
    pause.go_on()

    loser.result(TIMEOUT)
    winner.result(TIMEOUT)
    assert_fired_once(task)
    assert fired_by(task) == second
    assert list(task.transitions.values_list("cause", flat=True)) == [
        "PLANNED",
        "CLAIMED",
        "TAKEN_OVER",
        "FIRED",
    ]


def test_taken_over_before_the_second_gate_the_first_finds_nothing_of_its_own(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = due_task(cast)
    first = claim(task)
    second = claim(task)
    pause = Pause(monkeypatch, notices, "deliver")
    winner = threads.start(lambda: settle(second, task))
    pause.wait()
    loser = threads.start(lambda: settle(first, task))
    threads.wait_until_blocked()
    pause.go_on()

    winner.result(TIMEOUT)
    loser.result(TIMEOUT)
    assert_fired_once(task)
    assert fired_by(task) == second


def test_taken_over_and_finished_the_first_finds_it_done(cast: Cast) -> None:
    task = due_task(cast)
    first = claim(task)
    second = claim(task)

    settle(second, task)
    settle(first, task)

    assert_fired_once(task)
    assert fired_by(task) == second


def test_without_the_lease_in_the_condition_the_loser_would_commit(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the same order of events, the guard removed."""
    guard = "AND task.execution_id IS NOT DISTINCT FROM step.lease"
    assert guard in moves._MOVE
    monkeypatch.setattr(moves, "_MOVE", moves._MOVE.replace(guard, ""))
    task = due_task(cast)
    pause = Pause(monkeypatch, notices, "deliver", after=True)
    first = claim(task)
    loser = threads.start(lambda: settle(first, task))
    pause.wait()
    second = claim(task)
    pause.go_on()

    loser.result(TIMEOUT)
    assert fired_by(task) == first != second


def test_a_failure_does_not_mark_the_task_of_whoever_took_it_over(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = due_task(cast)
    broken = Break(monkeypatch)
    first = claim(task)
    loser = threads.start(lambda: settle(first, task))
    broken.pause.wait()
    second = claim(task)
    broken.pause.go_on()
    loser.result(TIMEOUT)

    task.refresh_from_db()
    assert (task.status, task.execution_id, task.attempts) == ("RUNNING", second, 0)

    settle(second, task)
    assert_fired_once(task)


class Break:
    """The first delivery is held, then fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = notices.deliver
        self.failed = False

        def fail_once(*args: Any, **kwargs: Any) -> Any:
            if not self.failed:
                self.failed = True
                raise OSError("disk full")
            return real(*args, **kwargs)

        monkeypatch.setattr(notices, "deliver", fail_once)
        self.pause = Pause(monkeypatch, notices, "deliver")


def test_losing_one_of_a_set_leaves_the_others_fired_and_not_waiting(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [due_task(cast) for _ in range(3)]
    pause = Pause(monkeypatch, notices, "deliver", after=True)
    lease = processor.claim(team_id=cast.team.pk, hints=[(task.pk, task.run) for task in tasks])
    assert lease is not None
    whole_set = threads.start(lambda: settle(lease, *tasks))
    pause.wait()
    second = claim(tasks[1])
    one = threads.start(lambda: settle(second, tasks[1]))
    threads.wait_until_blocked()
    pause.go_on()

    whole_set.result(TIMEOUT)
    one.result(TIMEOUT)
    assert_fired_once(*tasks)
    assert [fired_by(task) for task in tasks] == [lease, second, lease]


def test_a_worker_whose_lease_was_recovered_commits_nothing(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = due_task(cast)
    pause = Pause(monkeypatch, notices, "deliver", after=True)
    lease = claim(task)
    slow = threads.start(lambda: settle(lease, task))
    pause.wait()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE reminders_task SET lease_expires_at = now() - interval '1 second'")
    assert recover_expired() == 1
    pause.go_on()
    slow.result(TIMEOUT)

    task.refresh_from_db()
    assert (task.status, task.run, task.attempts) == ("WAITING", 2, 1)
    assert not ReminderNotification.objects.exists()
    assert not TicketEvent.objects.filter(kind="TIMEOUT_REMINDED").exists()

    processor.process(team_id=task.team_id, hints=[(task.pk, 1)])
    assert not ReminderNotification.objects.exists()
    processor.process(team_id=task.team_id, hints=[(task.pk, 2)])
    assert ReminderNotification.objects.count() == 1


def test_a_takeover_does_not_prolong_the_lease(cast: Cast) -> None:
    """Or a task that kills its worker, and is delivered again at once, would go round for ever."""
    task = due_task(cast)
    claim(task)
    task.refresh_from_db()
    expires = task.lease_expires_at

    claim(task)

    task.refresh_from_db()
    assert task.lease_expires_at == expires
