"""The same message many times at once."""

from threading import Barrier

import pytest
from django.db import connection

from notifications.models import ReminderNotification
from reminders import moves, processor
from reminders.models import Task
from tests.cast import Cast, make_cast
from tests.factories import act, make_due, open_ticket
from tests.races.conftest import TIMEOUT, Pause, Threads
from tickets import services
from tickets.models import Ticket, TicketEvent


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


def due_task(cast: Cast, team: str = "team") -> Task:
    ticket = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)
    return make_due(ticket)


def outcome(task: Task) -> tuple[int, int, int]:
    return (
        ReminderNotification.objects.filter(ticket=task.ticket_id).count(),
        TicketEvent.objects.filter(ticket=task.ticket_id, kind="TIMEOUT_REMINDED").count(),
        Ticket.objects.get(pk=task.ticket_id).version - 1,
    )


def test_twenty_deliveries_at_once_give_one_notice_one_event_and_one_version(
    cast: Cast, threads: Threads
) -> None:
    """Past the lane, so that all of them really meet at the gates."""
    task = due_task(cast)
    together = Barrier(10)

    def deliver() -> None:
        for _again in range(2):
            together.wait(TIMEOUT)
            lease = processor.claim(team_id=task.team_id, hints=[(task.pk, task.run)])
            if lease is not None:
                processor.settle(team_id=task.team_id, task_ids=[task.pk], lease=lease)

    for call in [threads.start(deliver) for _ in range(10)]:
        call.result(TIMEOUT)

    assert outcome(task) == (1, 1, 1)
    task.refresh_from_db()
    assert (task.status, task.attempts) == ("COMPLETED", 0)


def test_overlapping_sets_in_different_order_do_not_deadlock(cast: Cast, threads: Threads) -> None:
    tasks = [due_task(cast) for _ in range(20)]
    together = Barrier(6)

    def deliver(order: int) -> None:
        hints = [(task.pk, task.run) for task in tasks][:: 1 if order % 2 else -1]
        together.wait(TIMEOUT)
        lease = processor.claim(team_id=cast.team.pk, hints=hints)
        if lease is not None:
            ids = [task_id for task_id, _run in hints]
            processor.settle(team_id=cast.team.pk, task_ids=ids, lease=lease)

    for call in [threads.start(lambda order=order: deliver(order)) for order in range(6)]:
        call.result(TIMEOUT)

    for task in tasks:
        assert outcome(task) == (1, 1, 1)
    assert not Task.objects.filter(ticket__team=cast.team, last_error__gt="").exists()


def test_without_the_ordered_lock_overlapping_claims_deadlock(cast: Cast, threads: Threads) -> None:
    """The control: two sessions that lock the same two rows in opposite order."""
    first, second = due_task(cast), due_task(cast)
    together = Barrier(2)

    def lock(*order: Task) -> None:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN; SET LOCAL deadlock_timeout = '50ms'")
            for task in order:
                cursor.execute(
                    "UPDATE reminders_task SET progress = progress WHERE id = %s", [task.pk]
                )
                if task is order[0]:
                    together.wait(TIMEOUT)
            cursor.execute("ROLLBACK")

    calls = [
        threads.start(lambda: lock(first, second)),
        threads.start(lambda: lock(second, first)),
    ]

    errors = [str(call.exception(TIMEOUT)) for call in calls]
    assert any("deadlock detected" in error for error in errors)
    assert "ORDER BY task.id" in moves._CLAIM
    assert "ORDER BY task.id" in moves._MOVE


def test_a_busy_team_is_told_to_come_back_and_nothing_is_claimed(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [due_task(cast) for _ in range(2)]
    pause = Pause(monkeypatch, processor, "claim", after=True)
    first = threads.start(lambda: processor.process(team_id=cast.team.pk, hints=[(tasks[0].pk, 1)]))
    pause.wait()

    with pytest.raises(processor.TeamBusy):
        processor.process(team_id=cast.team.pk, hints=[(tasks[1].pk, 1)])
    assert Task.objects.get(pk=tasks[1].pk).status == "WAITING"

    elsewhere = services.create_ticket(
        team_id=cast.other_team.pk,
        actor_id=cast.user("stranger").pk,
        title="Elsewhere",
        description="Not busy.",
    )
    other = make_due(elsewhere)
    processor.process(team_id=cast.other_team.pk, hints=[(other.pk, 1)])
    assert ReminderNotification.objects.filter(ticket=elsewhere).count() == 1

    pause.go_on()
    first.result(TIMEOUT)
    processor.process(team_id=cast.team.pk, hints=[(tasks[1].pk, 1)])
    assert [outcome(task) for task in tasks] == [(1, 1, 1), (1, 1, 1)]
