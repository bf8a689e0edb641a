"""What makes an audit run by itself: beat, and completed tasks, many of which make one."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from redis import Redis

from helpdesk.celery import app
from reminders import outbox, tasks
from reminders.models import AuditRun, Finding, Task
from tests.broker import use_broker
from tests.cast import Cast
from tests.factories import active_task, age, make_due, open_ticket, run
from tests.reminders.audit import anomalies


def waiting(broker: Redis) -> list[dict[str, Any]]:
    return [json.loads(message)["headers"] for message in broker.lrange("audit", 0, -1)]


def test_completed_tasks_ask_for_one_audit_of_their_team(cast: Cast, own_broker: Redis) -> None:
    for _number in range(3):
        run(make_due(open_ticket(cast)))

    (message,) = waiting(own_broker)
    assert (message["task"], message["argsrepr"]) == (
        "reminders.audit_team",
        f"[{cast.team.pk}]",
    )
    assert message["eta"] is not None
    # It lapses when nobody takes it: the periodic one will have been there.
    assert message["expires"] is not None


def test_each_team_has_its_own_and_after_the_wait_there_is_another(
    cast: Cast, own_broker: Redis
) -> None:
    outbox.request_audit(cast.team.pk)
    outbox.request_audit(cast.other_team.pk)
    outbox.request_audit(cast.team.pk)
    assert len(waiting(own_broker)) == 2
    wait = own_broker.pttl(f"helpdesk:audit:{cast.team.pk}")
    assert 0 < wait <= settings.AUDIT_DEBOUNCE / timedelta(milliseconds=1)

    own_broker.delete(f"helpdesk:audit:{cast.team.pk}")  # The wait is over.
    outbox.request_audit(cast.team.pk)
    assert len(waiting(own_broker)) == 3


def test_a_message_that_finds_nothing_to_do_asks_for_nothing(cast: Cast, own_broker: Redis) -> None:
    task = make_due(open_ticket(cast))
    run(task)
    own_broker.flushdb()

    run(task)

    assert waiting(own_broker) == []


def test_without_a_broker_the_reminder_is_sent_all_the_same(
    cast: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    task = make_due(open_ticket(cast))
    before = app.conf.broker_url
    use_broker("redis://127.0.0.1:1/0")
    try:
        run(task)
    finally:
        use_broker(before)

    task.refresh_from_db()
    assert task.status == "COMPLETED"
    assert "audit.request_failed" in caplog.text


def test_the_scan_after_completed_tasks_mends_its_team(cast: Cast) -> None:
    anomalies.worker_vanished(cast)

    tasks.audit_team.apply(args=[cast.other_team.pk], throw=True)
    assert not Finding.objects.exists()

    tasks.audit_team.apply(args=[cast.team.pk], throw=True)
    assert Finding.objects.get().action == "REQUEUED"
    assert AuditRun.objects.get().trigger == "BOUNDARY"


def test_the_periodic_scan_mends_everything(cast: Cast) -> None:
    anomalies.worker_vanished(cast)

    tasks.audit.apply(throw=True)

    assert Finding.objects.get().action == "REQUEUED"
    assert AuditRun.objects.get().trigger == "BEAT"


def test_while_one_runs_the_others_have_nothing_to_do(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    from contextlib import nullcontext

    monkeypatch.setattr(
        "reminders.audit.runner.audit_lane", lambda: nullcontext(enter_result=False)
    )

    tasks.audit.apply(throw=True)
    tasks.audit_team.apply(args=[cast.team.pk], throw=True)

    assert not AuditRun.objects.exists()


def test_pruning_is_a_job_of_its_own(cast: Cast) -> None:
    age(anomalies.fired(cast).ticket, timedelta(days=91))

    tasks.prune.apply(throw=True)

    assert not Task.objects.get().transitions.exists()


def test_beat_does_all_of_it_on_a_queue_that_delays_no_reminder() -> None:
    jobs = {each["task"]: each["schedule"] for each in app.conf.beat_schedule.values()}

    assert jobs["reminders.audit"] == settings.AUDIT_PERIOD
    assert jobs["reminders.prune"] == settings.AUDIT_PRUNE_PERIOD
    for name in ("audit", "audit_team", "prune"):
        assert app.conf.task_routes[f"reminders.{name}"] == {"queue": "audit"}


def test_an_overdue_task_is_not_forgotten_while_the_dispatcher_works(cast: Cast) -> None:
    """However long it is overdue, the dispatcher publishes more often than the check waits."""
    task = active_task(age(anomalies.assigned(cast), anomalies.LONG))
    outbox.dispatch_due()

    tasks.audit.apply(throw=True)

    assert not Finding.objects.exists()
    assert Task.objects.get(pk=task.pk).dispatched_at is not None
    assert outbox.FORGOTTEN_AFTER > outbox.RESEND_CAP + settings.REMINDER_DISPATCH_PERIOD
