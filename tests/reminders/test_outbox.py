"""What is published when, in which messages, and what happens without a broker."""

import json
from base64 import b64decode
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from redis import Redis

from helpdesk.celery import app
from helpdesk.clock import database_now
from reminders import outbox
from reminders.models import Task
from tests.broker import use_broker
from tests.cast import Cast
from tests.factories import act, active_task, make_due, open_ticket
from tickets import services
from tickets.models import Ticket


def messages(broker: Redis) -> list[dict[str, Any]]:
    """What lies in the queue of the reminders, oldest first."""
    return [json.loads(raw) for raw in reversed(broker.lrange("reminders", 0, -1))]  # type: ignore[arg-type]


def hints(message: dict[str, Any]) -> tuple[int, list[list[int]]]:
    team_id, pairs = json.loads(b64decode(message["body"]))[0]
    return team_id, pairs


def due_in(ticket: Ticket, seconds: float) -> Task:
    """Move the present reminder so that it comes due that many seconds from now."""
    return make_due(ticket, ago=timedelta(seconds=-seconds))


def test_what_is_due_within_the_horizon_is_published_with_an_eta_and_marked(
    cast: Cast, own_broker: Redis
) -> None:
    task = due_in(open_ticket(cast), 30)

    assert outbox.dispatch_due() == 1

    (message,) = messages(own_broker)
    assert hints(message) == (cast.team.pk, [[task.pk, task.run]])
    eta = datetime.fromisoformat(message["headers"]["eta"])
    assert abs(eta - task.due_at) < timedelta(seconds=2)
    task.refresh_from_db()
    assert task.dispatched_at is not None
    assert task.status == "WAITING"


def test_a_message_goes_to_the_queue_of_the_reminders_and_to_no_other(
    cast: Cast, own_broker: Redis
) -> None:
    for queue in app.conf.task_queues:
        with app.connection_for_write() as broker:
            queue(broker.default_channel).declare()  # As a worker does when it starts.
    make_due(open_ticket(cast))

    outbox.dispatch_due()

    lengths = {queue.name: own_broker.llen(queue.name) for queue in app.conf.task_queues}
    assert lengths == {"reminders": 1, "dispatch": 0, "audit": 0, "default": 0}


def test_what_is_overdue_is_published_without_an_eta(cast: Cast, own_broker: Redis) -> None:
    make_due(open_ticket(cast))

    outbox.dispatch_due()

    assert messages(own_broker)[0]["headers"]["eta"] is None


def test_what_is_beyond_the_horizon_stays_in_the_table(cast: Cast, own_broker: Redis) -> None:
    due_in(open_ticket(cast), settings.REMINDER_HORIZON.total_seconds() + 30)

    assert outbox.dispatch_due() == 0
    assert messages(own_broker) == []


def test_what_was_published_is_not_published_again_while_it_is_not_late(
    cast: Cast, own_broker: Redis
) -> None:
    due_in(open_ticket(cast), 30)

    assert (outbox.dispatch_due(), outbox.dispatch_due()) == (1, 0)


def late_and_published(cast: Cast, *, late: timedelta, published: timedelta) -> Task:
    task = make_due(open_ticket(cast), ago=late)
    Task.objects.filter(pk=task.pk).update(dispatched_at=database_now() - published)
    return task


@pytest.mark.parametrize(
    ("late", "published", "again"),
    [
        (5, 5, False),  # Not late enough to be taken for lost.
        (12, 12, True),
        (12, 8, False),
        (60, 20, False),  # Half of its lateness has not passed since.
        (60, 31, True),
        (86_400, 55, False),
        (86_400, 61, True),  # However late: at least once a minute.
    ],
)
def test_a_lost_message_is_published_again_and_a_backlog_is_not_multiplied(
    cast: Cast, late: int, published: int, again: bool
) -> None:
    late_and_published(cast, late=timedelta(seconds=late), published=timedelta(seconds=published))

    assert outbox.dispatch_due() == int(again)


def test_a_thousand_reminders_of_one_second_are_a_few_messages(
    cast: Cast, own_broker: Redis
) -> None:
    tickets = [open_ticket(cast) for _ in range(30)]
    moment = database_now().replace(microsecond=0) - timedelta(seconds=5)
    for copies in range(30):
        Task.objects.filter(ticket=tickets[copies]).update(
            available_at=moment + timedelta(milliseconds=copies)
        )
    Ticket.objects.update(due_at=moment)
    size = settings.REMINDER_SET_SIZE

    assert outbox.dispatch_due() == 30

    assert size == 500
    (message,) = messages(own_broker)
    team_id, pairs = hints(message)
    assert team_id == cast.team.pk
    assert [task_id for task_id, _run in pairs] == list(
        Task.objects.order_by("id").values_list("id", flat=True)
    )


def test_a_message_carries_one_team_one_second_and_no_more_than_a_set(
    cast: Cast, own_broker: Redis, settings: Any
) -> None:
    settings.REMINDER_SET_SIZE = 2
    moment = database_now().replace(microsecond=0) - timedelta(seconds=5)
    for _ in range(3):
        open_ticket(cast)
    Task.objects.update(available_at=moment)
    later = active_task(open_ticket(cast))
    Task.objects.filter(pk=later.pk).update(available_at=moment + timedelta(seconds=1))
    elsewhere = services.create_ticket(
        team_id=cast.other_team.pk,
        actor_id=cast.user("stranger").pk,
        title="Elsewhere",
        description="Here.",
    )
    Task.objects.filter(ticket=elsewhere).update(available_at=moment)

    outbox.dispatch_due()

    sizes = sorted(
        (team_id == cast.team.pk, len(pairs)) for team_id, pairs in map(hints, messages(own_broker))
    )
    assert sizes == [(False, 1), (True, 1), (True, 1), (True, 2)]


def test_a_task_that_has_failed_before_travels_alone(cast: Cast, own_broker: Redis) -> None:
    moment = database_now().replace(microsecond=0) - timedelta(seconds=5)
    for _ in range(3):
        open_ticket(cast)
    Task.objects.update(available_at=moment)
    suspect = Task.objects.earliest("id")
    Task.objects.filter(pk=suspect.pk).update(attempts=1)

    outbox.dispatch_due()

    carried = sorted(len(pairs) for _team, pairs in map(hints, messages(own_broker)))
    assert carried == [1, 2]


def test_a_near_reminder_is_published_at_the_commit(
    cast: Cast, own_broker: Redis, django_capture_on_commit_callbacks: Any
) -> None:
    ticket = open_ticket(cast)
    with django_capture_on_commit_callbacks(execute=True):
        ticket = act(cast, services.schedule_reminder, ticket, minutes=1)

    (message,) = messages(own_broker)
    task = active_task(ticket)
    assert hints(message) == (cast.team.pk, [[task.pk, 1]])
    assert task.dispatched_at is not None


def test_a_far_reminder_is_left_to_beat(
    cast: Cast, own_broker: Redis, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        act(cast, services.schedule_reminder, open_ticket(cast), minutes=2)

    assert messages(own_broker) == []


@pytest.fixture
def broker_down(own_broker: Redis) -> None:
    use_broker("redis://127.0.0.1:1/0")


def test_without_a_broker_the_request_succeeds_and_the_row_keeps_what_to_publish(
    cast: Cast, broker_down: None, django_capture_on_commit_callbacks: Any
) -> None:
    ticket = open_ticket(cast)
    with django_capture_on_commit_callbacks(execute=True):
        ticket = act(cast, services.schedule_reminder, ticket, minutes=1)

    assert ticket.reminder_revision == 1
    assert active_task(ticket).dispatched_at is None


def test_without_a_broker_dispatch_marks_nothing_and_tries_again_later(
    cast: Cast, broker_down: None
) -> None:
    task = make_due(open_ticket(cast))

    assert outbox.dispatch_due() == 0

    task.refresh_from_db()
    assert task.dispatched_at is None


def test_published_before_marked_a_crash_in_between_repeats_and_does_not_lose(
    cast: Cast, own_broker: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_due(open_ticket(cast))
    published = outbox._publish

    def crash(*args: Any) -> Any:
        published(*args)
        raise SystemExit

    monkeypatch.setattr(outbox, "_publish", crash)
    with pytest.raises(SystemExit):
        outbox.dispatch_due()
    monkeypatch.undo()

    assert outbox.dispatch_due() == 1
    assert len(messages(own_broker)) == 2


def test_dispatch_does_not_wait_for_rows_somebody_else_has_locked(cast: Cast) -> None:
    make_due(open_ticket(cast))

    with CaptureQueriesContext(connection) as captured:
        outbox.dispatch_due()

    assert any(
        "FOR NO KEY UPDATE" in query["sql"] and "SKIP LOCKED" in query["sql"] for query in captured
    )


def test_the_dispatch_query_uses_its_index_however_much_is_stored(cast: Cast) -> None:
    """20,000 waiting rows, most of them far in the future: it reads the few that matter, in order."""
    ticket = open_ticket(cast)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO reminders_task (team_id, kind, ticket_id, reminder_revision, owner_id, run,"
            " status, due_at, available_at, attempts, last_error, progress, result_summary, created_at)"
            " SELECT %s, 'REMINDER', %s, 1000 + i, %s, 1, 'WAITING', now() + i * interval '1 minute',"
            " now() + i * interval '1 minute', 0, '', 0, '', now() FROM generate_series(1, 20000) AS i",
            [cast.team.pk, ticket.pk, ticket.creator_id],
        )
        cursor.execute("ANALYZE reminders_task")
    now = database_now()
    plan = (
        Task.objects.filter(outbox._to_publish(now))
        .order_by("available_at", "id")[: outbox.BATCH]
        .explain()
    )

    assert "task_to_dispatch" in plan
    assert "Seq Scan" not in plan
    assert "Sort" not in plan
