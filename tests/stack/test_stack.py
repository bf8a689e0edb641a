"""The promise, kept by real processes: whatever is killed, lost, down or repeated, it fires once."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import monotonic

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from helpdesk.celery import app
from helpdesk.clock import database_now
from notifications.models import ReminderNotification
from reminders.models import Task
from tests.cast import Cast, make_cast
from tests.factories import act, active_task, make_due, open_ticket
from tests.stack.conftest import Stack, wait_until
from tickets import services
from tickets.models import Ticket, TicketEvent

pytestmark = [pytest.mark.stack, pytest.mark.timeout(150)]


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


def assigned(cast: Cast) -> Ticket:
    ticket: Ticket = act(
        cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk
    )
    return ticket


def due_in(ticket: Ticket, seconds: float) -> Task:
    return make_due(ticket, ago=timedelta(seconds=-seconds))


def wait_until_fired(*tickets: Ticket) -> None:
    ids = [ticket.pk for ticket in tickets]
    wait_until(
        lambda: (
            ReminderNotification.objects.filter(ticket__in=ids).count() == len(ids)
            and not Task.objects.filter(ticket__in=ids, status__in=["WAITING", "RUNNING"]).exists()
        ),
        "every reminder has fired",
    )


def assert_fired_once(*tickets: Ticket) -> None:
    """Once, not early, and with nothing left behind."""
    for ticket in tickets:
        notice = ReminderNotification.objects.get(ticket=ticket)
        event = TicketEvent.objects.get(ticket=ticket, kind="TIMEOUT_REMINDED")
        assert notice.created_at >= notice.due_at
        assert event.version == Ticket.objects.get(pk=ticket.pk).version
    assert not Task.objects.filter(status__in=["WAITING", "RUNNING", "FAILED"]).exists()


def quiet_stack(stack: Stack) -> None:
    """A worker and a beat that have done their first round."""
    stack.worker()
    stack.beat()


def test_from_the_pages_button_to_the_bell_in_one_real_minute(
    stack: Stack, cast: Cast, client: Client
) -> None:
    quiet_stack(stack)
    ticket = assigned(cast)
    client.force_login(cast.user("second_agent"))
    address = {"slug": cast.team.slug, "number": ticket.number}

    answer = client.post(
        reverse("ticket-action", kwargs={**address, "action": "reminder"}),
        {"minutes": "1", "note": "Call back", "version": ticket.version},
    )
    assert answer.status_code == 302
    due_at = Ticket.objects.get(pk=ticket.pk).due_at
    assert due_at is not None

    wait_until(ReminderNotification.objects.exists, "the reminder", within=75)
    assert_fired_once(ticket)
    notice = ReminderNotification.objects.get()
    assert (notice.user, notice.note, notice.due_at) == (cast.user("agent"), "Call back", due_at)
    assert notice.late_ms < 3_000

    client.force_login(cast.user("agent"))
    bell = client.get(reverse("notifications")).content.decode()
    assert ticket.title in bell
    history = client.get(reverse("ticket", kwargs=address)).content.decode()
    assert "Reminder sent" in history


def test_broker_down_at_the_commit_it_fires_after_the_broker_is_back(
    stack: Stack, cast: Cast
) -> None:
    quiet_stack(stack)
    ticket = assigned(cast)
    stack.broker.kill()

    started = monotonic()
    ticket = act(cast, services.schedule_reminder, ticket, minutes=1)
    assert monotonic() - started < 2
    task = due_in(ticket, 0.5)
    wait_until(lambda: database_now() > task.due_at, "the due time has passed")
    assert Task.objects.get(pk=task.pk).dispatched_at is None
    stack.start_broker()

    wait_until_fired(ticket)
    assert_fired_once(ticket)


def test_a_broker_that_does_not_answer_holds_no_request_for_long(stack: Stack, cast: Cast) -> None:
    ticket = assigned(cast)
    assert stack.broker.pid is not None
    os.kill(stack.broker.pid, signal.SIGSTOP)
    try:
        started = monotonic()
        ticket = act(cast, services.schedule_reminder, ticket, minutes=1)
        waited = monotonic() - started
    finally:
        os.kill(stack.broker.pid, signal.SIGCONT)

    assert ticket.reminder_revision == 1
    assert waited < 8


def test_a_broker_that_forgets_everything_loses_no_reminder(stack: Stack, cast: Cast) -> None:
    tickets = [assigned(cast) for _ in range(5)]
    tasks = [due_in(ticket, 6) for ticket in tickets]
    quiet_stack(stack)
    published = Task.objects.filter(dispatched_at__isnull=False)
    wait_until(lambda: published.count() == len(tasks), "all are at the broker")

    stack.broker.kill()
    stack.start_broker()

    wait_until_fired(*tickets)
    assert_fired_once(*tickets)


@contextmanager
def notices_blocked() -> Iterator[None]:
    """Whoever writes a notice now is held in the middle of its transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE notifications_remindernotification IN SHARE MODE")
        yield


def blocked_session() -> int | None:
    with connection.cursor() as cursor:
        # Inside a transaction the view would not change otherwise.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND wait_event_type = 'Lock' AND query LIKE 'INSERT INTO%notifications_rem%'"
        )
        row = cursor.fetchone()
    return row[0] if row else None


def test_a_worker_killed_in_the_middle_of_its_transaction_fires_once(
    stack: Stack, cast: Cast
) -> None:
    ticket = assigned(cast)
    make_due(ticket)
    with notices_blocked():
        doomed = stack.worker()
        stack.beat()
        wait_until(blocked_session, "the worker is in its transaction")
        stack.kill(doomed)
    assert not TicketEvent.objects.filter(kind="TIMEOUT_REMINDED").exists()
    stack.worker()

    wait_until_fired(ticket)
    assert_fired_once(ticket)
    task = Task.objects.get(ticket=ticket)
    assert list(task.transitions.values_list("cause", flat=True)) == [
        "PLANNED",
        "CLAIMED",
        "LEASE_EXPIRED",
        "CLAIMED",
        "FIRED",
    ]
    assert task.run == 2


def test_a_child_of_the_worker_killed_in_its_transaction_is_replaced_at_once(
    stack: Stack, cast: Cast
) -> None:
    """The message is given back and the task taken over: nobody waits for the lease to expire."""
    ticket = assigned(cast)
    make_due(ticket)
    with notices_blocked():
        worker = stack.worker()
        stack.beat()
        wait_until(blocked_session, "the worker is in its transaction")
        for child in Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)

    wait_until_fired(ticket)
    assert_fired_once(ticket)
    task = Task.objects.get(ticket=ticket)
    assert task.run == 1
    assert "TAKEN_OVER" in task.transitions.values_list("cause", flat=True)


def test_a_session_cut_in_the_middle_of_its_transaction_fires_once(
    stack: Stack, cast: Cast
) -> None:
    ticket = assigned(cast)
    make_due(ticket)
    with notices_blocked():
        quiet_stack(stack)
        session = wait_until(blocked_session, "the worker is in its transaction")
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [session])

    wait_until_fired(ticket)
    assert_fired_once(ticket)


def test_a_hung_task_is_stopped_and_the_others_still_fire(stack: Stack, cast: Cast) -> None:
    """One row that nobody can write, as long as it takes to be stopped by the time limits."""
    hung, *others = [assigned(cast) for _ in range(4)]
    for ticket in (hung, *others):
        make_due(ticket)
    elsewhere = services.create_ticket(
        team_id=cast.other_team.pk,
        actor_id=cast.user("stranger").pk,
        title="Elsewhere",
        description="Here.",
    )
    make_due(elsewhere)
    with transaction.atomic():
        # What the team's processor wants first: its lock. Nothing else can be wrong with the others.
        Ticket.objects.select_for_update().get(pk=hung.pk)
        quiet_stack(stack)
        wait_until_fired(elsewhere)

    wait_until_fired(hung, *others)
    assert_fired_once(hung, *others, elsewhere)


def test_twenty_messages_for_one_task_and_old_ones_fire_once(stack: Stack, cast: Cast) -> None:
    ticket = act(cast, services.schedule_reminder, assigned(cast), minutes=1)
    old = active_task(ticket)
    ticket = act(cast, services.schedule_reminder, ticket, minutes=1)
    task = make_due(ticket)
    for _ in range(20):
        app.send_task("reminders.process", args=[cast.team.pk, [[task.pk, task.run]]])
        app.send_task("reminders.process", args=[cast.team.pk, [[old.pk, old.run]]])
        app.send_task("reminders.process", args=[cast.team.pk, [[task.pk, task.run + 7]]])
    stack.worker(concurrency=4)

    wait_until_fired(ticket)
    with app.connection_for_read() as broker:
        wait_until(
            lambda: broker.default_channel.client.llen("reminders") == 0, "the queue is empty"
        )
    assert_fired_once(ticket)


def test_two_beats_and_two_workers_fire_once(stack: Stack, cast: Cast) -> None:
    tickets = [assigned(cast) for _ in range(40)]
    for ticket in tickets:
        due_in(ticket, 1)
    for _ in range(2):
        quiet_stack(stack)

    wait_until_fired(*tickets)
    assert_fired_once(*tickets)


def test_after_a_long_time_off_everything_still_wanted_fires_once_and_says_how_late(
    stack: Stack, cast: Cast
) -> None:
    tickets = [assigned(cast) for _ in range(10)]
    for ticket in tickets:
        make_due(ticket, ago=timedelta(days=60))
    cancelled = assigned(cast)
    make_due(cancelled, ago=timedelta(days=60))
    act(cast, services.schedule_reminder, cancelled, minutes=None)
    quiet_stack(stack)

    wait_until_fired(*tickets)
    assert_fired_once(*tickets)
    assert not ReminderNotification.objects.filter(ticket=cancelled).exists()
    late = ReminderNotification.objects.values_list("late_ms", flat=True)
    assert min(late) >= 60 * 86_400_000
