"""The runner: what it looks at, what it keeps of it, what it counts and closes, and what it survives."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from helpdesk.clock import database_now
from reminders import outbox
from reminders.audit import choice, registry, repair
from reminders.audit.registry import CHECKS, Check
from reminders.audit.sql import rows
from reminders.models import AuditRun, Finding, Task
from reminders.states import Action, Handling, Severity, Subject, Trigger
from tests.broker import use_broker
from tests.cast import Cast
from tests.factories import act, active_task, age, open_ticket
from tests.reminders.audit import anomalies
from tests.reminders.audit.conftest import Audit, Lines, everything
from tickets import services
from tickets.models import Ticket

ONE_BAD = "unexplained"


@pytest.fixture
def with_check() -> Iterator[Any]:
    """Puts checks on the list for one test; the others are off it."""
    before = dict(CHECKS)

    def put(*classes: type[Check]) -> None:
        CHECKS.clear()
        CHECKS.update({class_.code: class_() for class_ in classes})

    yield put
    CHECKS.clear()
    CHECKS.update(before)  # In the same order: it is the order in which they run.


class TicketsInALine(Check):
    """As small as a check can be: every open ticket is a finding."""

    code = "in_a_line"
    title: ClassVar[Promise] = _("Open")
    meaning: ClassVar[Promise] = _("Open")
    subject = Subject.TICKET
    severity = Severity.INFO
    live = "ticket.status = 'OPEN'"
    query = """
        SELECT ticket.id AS subject, ticket.team_id AS team, ticket.created_at AS since,
               ticket.number AS "ticket.number"
        FROM tickets_ticket AS ticket WHERE {scope}
    """


class Renamed(TicketsInALine):
    """The same, with a repair that fails for ticket 2."""

    code = "renamed"
    action = Action.ENDED
    live = "ticket.title <> 'done'"

    def repair(self, found: Any, *, team_id: int, now: Any) -> None:
        if any(each.evidence["ticket.number"] == 2 for each in found):
            raise LookupError("not number two")
        Ticket.objects.filter(pk__in=[each.subject_id for each in found]).update(title="done")


class Idle(Renamed):
    """A repair that says it was done and did nothing."""

    code = "idle"

    def repair(self, found: Any, *, team_id: int, now: Any) -> None:
        return


class Broken(TicketsInALine):
    code = "broken"
    query = "SELECT 1 / 0 AS subject FROM tickets_ticket AS ticket WHERE {scope}"


# --- One row for each check and subject -----------------------------------------------------------
def test_what_persists_is_counted_and_what_is_gone_is_closed(
    cast: Cast, audit: Audit, lines: Lines
) -> None:
    pk = anomalies.changed_behind_its_back(version=9)(cast)
    for _time in range(3):
        audit()
    row = Finding.objects.get()
    assert (row.seen, row.closed_at, row.first_seen < row.last_seen) == (3, None, True)
    first_seen = row.first_seen

    Ticket.objects.filter(pk=pk).update(version=2)
    report = audit()

    row.refresh_from_db()
    assert (report.findings, [each.id for each in report.gone]) == ([], [row.pk])
    assert (row.seen, row.first_seen, row.action) == (3, first_seen, "")
    assert row.dwell == row.closed_at - row.since
    assert [line["finding"] for line in lines("audit.finding")] == [row.pk]
    assert [line["finding"] for line in lines("audit.gone")] == [row.pk]

    Ticket.objects.filter(pk=pk).update(version=8)
    audit()
    assert Finding.objects.filter(closed_at=None).get().pk != row.pk


def test_the_evidence_is_that_of_the_last_look(cast: Cast, audit: Audit) -> None:
    pk = anomalies.changed_behind_its_back(version=9)(cast)
    audit()
    Ticket.objects.filter(pk=pk).update(version=10)
    audit()

    row = Finding.objects.get()
    assert (row.seen, row.evidence["ticket.version"]) == (2, 10)


def test_what_a_person_resolved_is_still_counted_and_asks_for_nobody(
    cast: Cast, audit: Audit
) -> None:
    anomalies.changed_behind_its_back(version=9)(cast)
    audit()
    Finding.objects.update(handling=Handling.RESOLVED, handled_at=database_now(), note="Known.")

    report = audit()

    row = Finding.objects.get()
    assert (row.seen, row.handling, row.note) == (2, "RESOLVED", "Known.")
    assert report.unrepaired == []


def test_the_record_is_committed_and_logged_before_a_repair_begins(
    cast: Cast, audit: Audit, monkeypatch: pytest.MonkeyPatch, transactional_db: None
) -> None:
    anomalies.worker_vanished(cast)
    seen: list[Any] = []
    original = repair.mend

    def watched(*arguments: Any, **more: Any) -> Any:
        from django.db import connection

        seen.append((connection.in_atomic_block, Finding.objects.get().action))
        return original(*arguments, **more)

    monkeypatch.setattr(repair, "mend", watched)
    audit()

    assert seen == [(False, "")]
    assert Finding.objects.get().action == "REQUEUED"


# --- What it looks at -----------------------------------------------------------------------------
def settled(cast: Cast) -> Ticket:
    """A ticket that was closed last year."""
    ticket = act(cast, services.start_ticket, open_ticket(cast))
    ticket = act(cast, services.resolve_ticket, ticket, note="Done.")
    return age(act(cast, services.close_ticket, ticket), timedelta(days=300))


def old_anomaly(cast: Cast) -> int:
    """A ticket of last year that a script has just changed, long after it was looked at."""
    ticket = settled(cast)
    Ticket.objects.filter(pk=ticket.pk).update(version=9)
    return ticket.pk


def test_stored_rows_are_looked_at_slice_by_slice(cast: Cast, audit: Audit, settings: Any) -> None:
    settings.AUDIT_SLICE = 2
    for _number in range(4):
        settled(cast)
    old_anomaly(cast)

    found = [len(audit().findings) for _run in range(4)]

    # Two, two, one and the end, and from the beginning; an open finding is looked at every time.
    assert [run.cursors["TICKET"] > 0 for run in AuditRun.objects.order_by("id")] == [
        True,
        True,
        False,
        True,
    ]
    assert [count > 0 for count in found] == [False, False, True, True]


def test_a_full_audit_looks_at_everything_at_once(
    cast: Cast, audit: Audit, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.AUDIT_SLICE = 1
    monkeypatch.setattr(choice, "CHUNK", 2)
    for _number in range(4):
        settled(cast)
    pk = old_anomaly(cast)
    assert audit().findings == []

    report = audit(full=True)

    assert [each.subject_id for each in report.findings if each.code == ONE_BAD] == [pk]
    assert report.rows == Ticket.objects.count() + Task.objects.count()


def test_after_completed_tasks_only_what_is_recent_in_the_team_is_looked_at(
    cast: Cast, audit: Audit
) -> None:
    audit()
    old_anomaly(cast)
    recent = anomalies.marked_complete(cast)
    Ticket.objects.filter(pk=Task.objects.get(pk=recent).ticket_id).update(due_at=None)

    report = audit(trigger=Trigger.BOUNDARY, team_id=cast.team.pk)

    assert {(each.code, each.subject_id) for each in report.findings} == {("unproven", recent)}
    other = audit(trigger=Trigger.BOUNDARY, team_id=cast.other_team.pk)
    assert (other.findings, other.run_id) == ([], None)
    assert Finding.objects.get().closed_at is None


def test_an_audit_of_one_team_leaves_the_findings_of_others_alone(cast: Cast, audit: Audit) -> None:
    anomalies.changed_behind_its_back(version=9)(cast)
    audit()

    report = audit(team_id=cast.other_team.pk)

    assert (report.findings, report.gone) == ([], [])
    assert Finding.objects.get().closed_at is None
    assert [each.code for each in audit(team_id=cast.team.pk).findings] == [ONE_BAD]


def test_an_audit_of_one_check_leaves_the_findings_of_others_alone(
    cast: Cast, audit: Audit
) -> None:
    anomalies.changed_behind_its_back(version=9)(cast)
    audit()

    audit(codes=["duplicate"])

    row = Finding.objects.get()
    assert (row.closed_at, row.seen) == (None, 1)
    # Nor does it count as a look at what is recent.
    assert AuditRun.objects.get(codes=["duplicate"]).cursors == {}


def test_runs_after_completed_tasks_are_kept_only_if_they_found_something(
    cast: Cast, audit: Audit
) -> None:
    audit(trigger=Trigger.BOUNDARY, team_id=cast.team.pk)
    assert not AuditRun.objects.exists()

    anomalies.worker_vanished(cast)
    audit(trigger=Trigger.BOUNDARY, team_id=cast.team.pk)

    run = AuditRun.objects.get()
    assert (run.trigger, run.team, run.found, run.repaired) == ("BOUNDARY", cast.team, 1, 1)


def test_a_run_says_when_how_long_and_what(cast: Cast, audit: Audit) -> None:
    anomalies.worker_vanished(cast)
    anomalies.changed_behind_its_back(version=9)(cast)

    report = audit()

    run = AuditRun.objects.get()
    assert (run.pk, run.trigger, run.full) == (report.run_id, "COMMAND", False)
    assert (run.found, run.opened, run.repaired, run.failed) == (2, 2, 1, 0)
    assert run.finished_at is not None
    assert run.started_at < run.finished_at
    assert run.duration_ms is not None
    assert run.query_ms is not None
    assert 0 <= run.query_ms <= run.duration_ms
    assert run.broker["depth"] == {"reminders": 0, "dispatch": 0, "audit": 0, "default": 0}


def test_a_dry_run_writes_nothing(cast: Cast, audit: Audit, lines: Lines) -> None:
    anomalies.worker_vanished(cast)
    anomalies.changed_behind_its_back(version=9)(cast)
    before = everything()

    report = audit(dry_run=True)

    assert everything() == before
    assert sorted(each.code for each in report.unrepaired) == ["expired_lease", ONE_BAD]
    assert not AuditRun.objects.exists()
    assert not Finding.objects.exists()
    assert lines("audit.finding") == []


# --- What it survives -----------------------------------------------------------------------------
def test_one_bad_row_holds_back_no_other_repair(
    cast: Cast, audit: Audit, with_check: Any, lines: Lines
) -> None:
    with_check(Renamed)
    for _number in range(3):
        open_ticket(cast)

    report = audit()

    done = {each.evidence["ticket.number"]: each.action for each in report.findings}
    assert done == {1: "ENDED", 2: "FAILED", 3: "ENDED"}
    assert [each.detail for each in report.unrepaired] == ["LookupError: not number two"]
    run = AuditRun.objects.get()
    assert (run.repaired, run.failed) == (2, 1)
    row = Finding.objects.get(closed_at=None)
    assert (row.action, row.action_detail) == ("FAILED", "LookupError: not number two")

    audit()  # Tried again, and counted.
    row.refresh_from_db()
    assert (row.seen, row.action) == (2, "FAILED")


def test_a_repair_that_changes_nothing_is_a_failure(
    cast: Cast, audit: Audit, with_check: Any
) -> None:
    with_check(Idle)
    open_ticket(cast)

    report = audit()

    assert [(each.action, each.detail.split(":")[0]) for each in report.findings] == [
        ("FAILED", "StillThere")
    ]


def test_a_broker_that_refuses_is_asked_once_for_all(
    cast: Cast, audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    pks = [anomalies.message_lost(cast) for _number in range(3)]
    asked: list[int] = []
    monkeypatch.setattr(outbox, "_publish", lambda hints, now: asked.append(len(hints)) or [])

    report = audit()

    assert asked == [3]
    assert [each.action for each in report.findings] == ["FAILED"] * 3
    assert (
        Task.objects.filter(
            pk__in=pks, dispatched_at__lt=database_now() - timedelta(minutes=30)
        ).count()
        == 3
    )


@pytest.mark.django_db(transaction=True)
def test_a_check_that_fails_is_named_and_closes_nothing(
    transactional_db: None, with_check: Any, audit: Audit
) -> None:
    from tests.cast import make_cast

    cast = make_cast()
    with_check(TicketsInALine)
    open_ticket(cast)
    audit()
    with_check(TicketsInALine, Broken)
    Finding.objects.update(code="broken")

    report = audit()

    assert list(report.errors) == ["broken"]
    assert "division by zero" in report.errors["broken"]
    assert sorted(Finding.objects.values_list("code", "closed_at")) == [
        ("broken", None),
        ("in_a_line", None),
    ]
    assert AuditRun.objects.order_by("id").last().errors == report.errors  # type: ignore[union-attr]


def test_a_broker_that_is_down_leaves_the_other_checks(
    cast: Cast, audit: Audit, settings: Any
) -> None:
    from helpdesk.celery import app

    before = app.conf.broker_url
    use_broker("redis://127.0.0.1:1/0")
    try:
        anomalies.worker_vanished(cast)
        report = audit()
    finally:
        use_broker(before)

    assert list(report.errors) == ["stale_messages"]
    assert [each.action for each in report.findings] == ["REQUEUED"]


# --- The registry ---------------------------------------------------------------------------------
def test_a_check_is_one_class(cast: Cast, audit: Audit, with_check: Any) -> None:
    with_check(TicketsInALine)
    ticket = open_ticket(cast)

    (found,) = audit().findings

    assert (found.subject_kind, found.subject_id, found.team_id) == (
        "TICKET",
        ticket.pk,
        cast.team.pk,
    )
    assert (found.evidence, found.verdict) == ({"ticket.number": 1}, "AMBIGUOUS")


def test_every_check_explains_itself() -> None:
    for code, check in CHECKS.items():
        assert code == check.code
        assert len(code) <= 40
        assert str(check.title)
        assert len(str(check.meaning)) > 60, code
        assert check.live or check.stored, code
        assert "{scope}" in check.query
        repairs = type(check).repair is not Check.repair
        assert repairs == (check.action is not None), code


def test_doubts_are_the_names_of_what_holds(cast: Cast) -> None:
    sql = registry.doubts(yes="1 = 1", no="1 = 2", unknown="NULL")

    assert rows(f"SELECT {sql} AS doubts", {}) == [{"doubts": ["yes"]}]


def test_a_task_that_gave_up_is_no_finding(cast: Cast, audit: Audit) -> None:
    """FAILED is a person's turn: nothing plans around the limit of attempts."""
    task = active_task(age(anomalies.assigned(cast), anomalies.LONG))
    anomalies.update_task(task.pk, status="FAILED", last_error="boom", finished_at=database_now())

    assert audit(full=True).findings == []
