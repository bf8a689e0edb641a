"""Repairs that meet real work: whoever has the lock first is right, and the other notices."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from helpdesk.clock import database_now
from notifications.models import ReminderNotification
from reminders import processor, recovery, schedule
from reminders.audit import look, record, repair, runner
from reminders.audit.runner import AuditBusy, Report
from reminders.models import Finding, Task
from reminders.states import Trigger
from tests.cast import Cast, make_cast
from tests.factories import act, active_task, run
from tests.races.conftest import TIMEOUT, Pause, Threads
from tests.reminders.audit import anomalies
from tickets import services
from tickets.models import Ticket, TicketEvent
from tickets.services import reminding


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


def audit() -> Report:
    return runner.audit(trigger=Trigger.COMMAND)


def outcome() -> list[tuple[str, str, bool]]:
    return [
        (row.code, row.action, row.closed_at is not None) for row in Finding.objects.order_by("id")
    ]


def assert_told_once_and_consistent(pk: int) -> None:
    """The promise, and the audit's own opinion of what is left."""
    task = Task.objects.get(pk=pk)
    assert (task.status, task.evidence["outcome"]) == ("COMPLETED", "fired")
    assert ReminderNotification.objects.filter(ticket=task.ticket_id).count() == 1
    assert TicketEvent.objects.filter(kind="TIMEOUT_REMINDED").count() == 1
    assert runner.audit(trigger=Trigger.COMMAND, full=True).findings == []


def assert_only_the_history_remembers() -> None:
    """What was set back behind everybody's back was completed a second time, and not by the audit."""
    assert [each.code for each in audit().findings] == ["completed_twice"]


# --- The audit and the processor ------------------------------------------------------------------
def test_a_task_taken_over_and_fired_before_the_repair_is_left_alone(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    pk = anomalies.worker_vanished(cast)
    pause = Pause(monkeypatch, repair, "locked_team")
    auditor = threads.start(audit)
    pause.wait()
    run(Task.objects.get(pk=pk))  # The redelivered message.
    pause.go_on()

    auditor.result(TIMEOUT)
    assert outcome() == [("expired_lease", "NOTHING", True)]
    assert Task.objects.get(pk=pk).run == 1
    assert_told_once_and_consistent(pk)


def test_a_worker_whose_task_was_put_back_loses_its_lease(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    pk = anomalies.worker_vanished(cast)
    task = Task.objects.get(pk=pk)
    pause = Pause(monkeypatch, recovery, "requeue", after=True)
    auditor = threads.start(audit)
    pause.wait()
    lease = task.execution_id
    assert lease is not None
    worker = threads.start(
        lambda: processor.settle(team_id=task.team_id, task_ids=[pk], lease=lease)
    )
    threads.wait_until_blocked()
    pause.go_on()

    auditor.result(TIMEOUT)
    worker.result(TIMEOUT)
    task.refresh_from_db()
    assert (task.status, task.run) == ("WAITING", 2)
    assert not ReminderNotification.objects.exists()
    run(task)
    assert outcome() == [("expired_lease", "REQUEUED", True)]
    assert_told_once_and_consistent(pk)


def test_a_worker_that_claims_while_the_proof_is_taken_finds_the_task_completed(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    pk = anomalies.completion_was_lost(cast)
    task = Task.objects.get(pk=pk)
    pause = Pause(monkeypatch, record, "settle")
    auditor = threads.start(audit)
    pause.wait()
    worker = threads.start(lambda: run(task))
    threads.wait_until_blocked()
    pause.go_on()

    auditor.result(TIMEOUT)
    worker.result(TIMEOUT)
    assert Task.objects.get(pk=pk).transitions.last().cause == "PROVEN"
    assert outcome() == [("finished_but_active", "COMPLETED", True)]
    assert_told_once_and_consistent(pk)


def test_a_worker_that_skips_what_was_sent_leaves_the_repair_nothing_to_do(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    pk = anomalies.completion_was_lost(cast)
    recorded = Pause(monkeypatch, repair, "locked_team")
    auditor = threads.start(audit)
    recorded.wait()
    held = Pause(monkeypatch, processor, "_remind")
    worker = threads.start(lambda: run(Task.objects.get(pk=pk)))
    held.wait()  # The worker has the team's lock.
    recorded.go_on()
    threads.wait_until_blocked()
    held.go_on()

    worker.result(TIMEOUT)
    auditor.result(TIMEOUT)
    assert Task.objects.get(pk=pk).evidence["reason"] == "ALREADY_SENT"
    assert outcome() == [("finished_but_active", "NOTHING", True)]
    assert ReminderNotification.objects.count() == 1
    assert_only_the_history_remembers()


# --- The audit and a person -----------------------------------------------------------------------
def reschedule(cast: Cast, pk: int) -> Ticket:
    ticket: Ticket = act(cast, services.schedule_reminder, Ticket.objects.get(pk=pk), minutes=30)
    return ticket


def test_a_reminder_set_before_the_repair_is_not_planned_again(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    pk = anomalies.never_planned(timedelta(hours=1))(cast)
    pause = Pause(monkeypatch, repair, "locked_team")
    auditor = threads.start(audit)
    pause.wait()
    ticket = reschedule(cast, pk)
    pause.go_on()

    auditor.result(TIMEOUT)
    assert outcome() == [("not_planned", "NOTHING", True)]
    assert Task.objects.get() == active_task(ticket)
    assert audit().findings == []


def test_a_reminder_set_during_the_repair_replaces_what_was_planned(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    pk = anomalies.never_planned(timedelta(hours=1))(cast)
    pause = Pause(monkeypatch, schedule, "plan_reminder", after=True)
    auditor = threads.start(audit)
    pause.wait()
    person = threads.start(lambda: reschedule(cast, pk))
    threads.wait_until_blocked()
    pause.go_on()

    auditor.result(TIMEOUT)
    ticket = person.result(TIMEOUT)
    first, second = Task.objects.order_by("id")
    assert (first.status, first.evidence["reason"]) == ("COMPLETED", "REPLACED")
    assert second == active_task(ticket)
    assert outcome() == [("not_planned", "PLANNED", True)]
    assert audit().findings == []


def test_a_person_who_holds_the_team_is_waited_for(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older task is about to be ended; meanwhile its ticket gets yet another intent."""
    pk = anomalies.ANOMALIES[6].make(cast)
    task = Task.objects.get(pk=pk)
    assert task.ticket.reminder_revision == 1
    held = Pause(monkeypatch, reminding, "record_change", after=True)
    person = threads.start(lambda: reschedule(cast, task.ticket_id))
    held.wait()
    auditor = threads.start(audit)
    threads.wait_until_blocked()
    held.go_on()

    person.result(TIMEOUT)
    auditor.result(TIMEOUT)
    task.refresh_from_db()
    assert (task.status, task.evidence["reason"]) == ("COMPLETED", "REPLACED")
    assert outcome() == [("obsolete", "NOTHING", True)]
    assert_only_the_history_remembers()


def test_what_came_in_doubt_meanwhile_is_not_mended(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    pk = anomalies.worker_vanished(cast)
    pause = Pause(monkeypatch, repair, "locked_team")
    auditor = threads.start(audit)
    pause.wait()
    anomalies.update_task(pk, started_at=database_now() + timedelta(days=1))
    pause.go_on()

    auditor.result(TIMEOUT)
    row = Finding.objects.get()
    assert (row.action, row.action_detail, row.verdict) == (
        "REFUSED",
        "started_in_future",
        "AMBIGUOUS",
    )
    assert row.closed_at is None
    assert Task.objects.get(pk=pk).status == "RUNNING"


def test_without_the_second_look_a_sent_reminder_would_be_put_back(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the repair believes what was recorded."""
    pk = anomalies.worker_vanished(cast)
    remembered = look.look_again(runner.CHECKS["expired_lease"], [pk], now=database_now())
    pause = Pause(monkeypatch, repair, "locked_team")
    auditor = threads.start(audit)
    pause.wait()
    run(Task.objects.get(pk=pk))
    answers = iter([remembered, []])
    monkeypatch.setattr(repair, "look_again", lambda *_a, **_k: next(answers))
    pause.go_on()

    auditor.result(TIMEOUT)
    # Only the table of transitions, the last guard, keeps the completed task from going round again.
    row = Finding.objects.get()
    assert (row.action, row.closed_at) == ("FAILED", None)
    assert "COMPLETED → WAITING (LEASE_EXPIRED) is no transition" in row.action_detail


# --- Two audits -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("module", "name", "after"),
    [
        (runner, "look", False),
        (runner, "look", True),
        (record, "write", True),
        (repair, "locked_team", False),
        (record, "settle", True),
    ],
    ids=["looking", "looked", "recorded", "repairing", "repaired"],
)
def test_of_two_audits_at_once_the_second_is_sent_away(
    cast: Cast,
    threads: Threads,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    after: bool,
) -> None:
    pk = anomalies.worker_vanished(cast)
    pause = Pause(monkeypatch, module, name, after=after)
    first = threads.start(audit)
    pause.wait()

    with pytest.raises(AuditBusy):
        audit()

    pause.go_on()
    first.result(TIMEOUT)
    assert Finding.objects.get().seen == 1
    assert Task.objects.get(pk=pk).run == 2
    assert audit().findings == []


@contextmanager
def no_lane() -> Iterator[bool]:
    yield True


@pytest.mark.parametrize("name", ["write", "settle"])
def test_even_without_their_lane_two_audits_mend_once(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The control: the finding's own row and the team's lock are the second guard."""
    monkeypatch.setattr(runner, "audit_lane", no_lane)
    pk = anomalies.worker_vanished(cast)
    pause = Pause(monkeypatch, record, name, after=True)
    first = threads.start(audit)
    pause.wait()
    second = threads.start(audit)
    if name == "settle":
        threads.wait_until_blocked()
    else:
        second.result(TIMEOUT)
    pause.go_on()

    first.result(TIMEOUT)
    second.result(TIMEOUT)
    # The second either meets the open row, or comes after it was closed and finds nothing to mend.
    actions = list(Finding.objects.order_by("id").values_list("action", flat=True))
    assert actions == (["REQUEUED", "NOTHING"] if name == "settle" else ["REQUEUED"])
    assert Task.objects.get(pk=pk).run == 2
    assert Task.objects.get(pk=pk).transitions.filter(cause="LEASE_EXPIRED").count() == 1
