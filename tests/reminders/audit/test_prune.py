"""What is old is forgotten, a little at a time; what still means something stays."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helpdesk.clock import database_now
from reminders.audit import prune as pruning
from reminders.audit.prune import prune
from reminders.models import AuditRun, Finding, Task, TaskTransition
from tests.cast import Cast
from tests.factories import age
from tests.reminders.audit import anomalies
from tests.reminders.audit.conftest import Audit

LONG_AGO = timedelta(days=91)


def test_the_history_of_finished_tasks_goes_and_that_of_others_stays(cast: Cast) -> None:
    old, recent = anomalies.fired(cast), anomalies.fired(cast)
    waiting = anomalies.assigned(cast)
    for ticket in (old.ticket, waiting):
        age(ticket, LONG_AGO)

    deleted = prune()

    assert deleted["transitions"] == 3
    assert set(TaskTransition.objects.values_list("task__ticket", flat=True)) == {
        recent.ticket_id,
        waiting.pk,
    }
    assert Task.objects.count() == 3


def test_closed_findings_go_with_their_runs_and_open_ones_stay_with_theirs(
    cast: Cast, audit: Audit
) -> None:
    anomalies.worker_vanished(cast)
    anomalies.changed_behind_its_back(version=9)(cast)
    first = audit(codes=["expired_lease"]).run_id
    second = audit(codes=["unexplained"]).run_id
    third = audit(codes=["duplicate"]).run_id
    Finding.objects.filter(closed_at__isnull=False).update(closed_at=database_now() - LONG_AGO)
    AuditRun.objects.update(started_at=database_now() - LONG_AGO)
    recent = audit(codes=["obsolete"]).run_id

    deleted = prune()

    assert (deleted["findings"], deleted["runs"]) == (1, 2)
    assert Finding.objects.get().code == "unexplained"
    assert set(AuditRun.objects.values_list("pk", flat=True)) == {second, recent}
    assert {first, third}.isdisjoint(AuditRun.objects.values_list("pk", flat=True))


def test_it_keeps_what_is_younger_than_configured(cast: Cast, audit: Audit, settings: Any) -> None:
    age(anomalies.fired(cast).ticket, timedelta(days=10))
    assert prune()["transitions"] == 0

    settings.AUDIT_KEEP = timedelta(days=5)
    assert prune()["transitions"] == 3


def test_it_goes_in_parts_and_stops_at_the_first_part_without_anything_old(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "BATCH", 2)
    for _number in range(3):
        age(anomalies.fired(cast).ticket, LONG_AGO)
    for _number in range(4):
        anomalies.fired(cast)

    with CaptureQueriesContext(connection) as queries:
        deleted = prune()

    # The clock; one look at the findings, one at the runs; five parts with something old, one without;
    # the clock for the receipts, and these.
    sent = [query["sql"] for query in queries if "SAVEPOINT" not in query["sql"]]
    assert len(sent) == 1 + 1 + 1 + 5 + 1 + 2
    assert deleted["transitions"] == 9
