"""Each kind of inconsistency is found, explained, logged, mended if it is certain, and left alone if it is not."""

from datetime import timedelta

import pytest

from helpdesk.clock import database_now
from notifications.models import ReminderNotification
from notifications.selectors import notices
from reminders.audit.registry import CHECKS
from reminders.evidence import firing_checksum
from reminders.models import Finding
from tests.cast import Cast
from tests.reminders.audit.anomalies import (
    ANOMALIES,
    Anomaly,
    assigned,
    fired,
    notice,
    update_task,
)
from tests.reminders.audit.conftest import Audit, Lines, everything
from tickets.models import TicketEvent

MENDED = [each for each in ANOMALIES if each.action]
RECORDED = [each for each in ANOMALIES if not each.action]


def finding(anomaly: Anomaly, subject: int) -> Finding:
    return Finding.objects.get(code=anomaly.code, subject_id=subject)


def says_the_same(line: dict[str, object], row: Finding) -> bool:
    """A line in the log has every field of the finding."""
    assert line["finding"] == row.pk
    assert (line["check"], line["severity"]) == (row.code, row.severity)
    assert line["subject"] == f"{row.subject_kind.lower()} {row.subject_id}"
    assert (line["team"], line["evidence"]) == (row.team_id, row.evidence)
    assert (line["since"], line["run"]) == (row.since.isoformat(), row.run_id)
    assert isinstance(line["dwell_s"], float)
    return True


def test_every_check_has_its_anomaly() -> None:
    assert {each.code for each in ANOMALIES} == set(CHECKS)
    assert {each.code for each in MENDED} == {
        code for code, check in CHECKS.items() if check.action
    }


@pytest.mark.parametrize("anomaly", MENDED, ids=str)
def test_what_is_certain_is_recorded_logged_and_mended(
    cast: Cast, audit: Audit, lines: Lines, anomaly: Anomaly
) -> None:
    subject = anomaly.make(cast)

    report = audit()

    row = finding(anomaly, subject)
    assert row.evidence | anomaly.evidence == row.evidence
    assert (row.verdict, row.doubts, row.seen) == ("CERTAIN", [], 1)
    assert (row.action, row.run_id, row.acted_run_id) == (
        anomaly.action,
        report.run_id,
        report.run_id,
    )
    assert row.team == cast.team
    assert row.since <= row.first_seen <= row.acted_at == row.closed_at
    assert row.dwell == row.closed_at - row.since
    found = [line for line in lines("audit.finding") if line["finding"] == row.pk]
    repaired = [line for line in lines("audit.repair") if line["finding"] == row.pk]
    assert [line["action"] for line in found + repaired] == ["", anomaly.action]
    assert all(says_the_same(line, row) for line in found + repaired)
    anomaly.mended(subject)

    again = audit()

    assert [each.code for each in again.findings if each.code == anomaly.code] == []
    assert Finding.objects.filter(code=anomaly.code).count() == 1


@pytest.mark.parametrize("anomaly", MENDED, ids=str)
def test_senseless_times_make_it_ambiguous_and_nothing_is_mended(
    cast: Cast, audit: Audit, lines: Lines, anomaly: Anomaly
) -> None:
    subject = anomaly.make(cast)
    anomaly.nonsense(subject)
    before = everything()

    report = audit(codes=[anomaly.code])

    assert everything() == before
    row = finding(anomaly, subject)
    assert (row.verdict, row.doubts, row.action) == ("AMBIGUOUS", anomaly.doubts, "")
    assert row.closed_at is None
    assert row.dwell >= timedelta(0)
    assert [each.id for each in report.unrepaired] == [row.pk]
    assert says_the_same(lines("audit.finding")[0], row)
    assert lines("audit.repair") == []


@pytest.mark.parametrize("anomaly", RECORDED, ids=str)
@pytest.mark.parametrize("senseless", [False, True], ids=["", "with senseless times"])
def test_what_is_ambiguous_is_recorded_logged_and_left_alone(
    cast: Cast, audit: Audit, lines: Lines, anomaly: Anomaly, senseless: bool
) -> None:
    subject = anomaly.make(cast)
    if senseless:
        anomaly.nonsense(subject)
    before = everything()

    report = audit(codes=[anomaly.code])

    assert everything() == before
    row = finding(anomaly, subject)
    assert row.evidence | anomaly.evidence == row.evidence
    assert (row.verdict, row.action, row.run_id) == ("AMBIGUOUS", "", report.run_id)
    assert row.dwell >= timedelta(0)
    assert [each.id for each in report.unrepaired] == [row.pk]
    assert says_the_same(lines("audit.finding")[0], row)

    audit(codes=[anomaly.code])

    row.refresh_from_db()
    assert (row.seen, row.closed_at) == (2, None)
    assert len(lines("audit.finding")) == 1


def test_nothing_else_is_found_in_a_healthy_queue(cast: Cast, audit: Audit, lines: Lines) -> None:
    fired(cast)
    assigned(cast)

    report = audit(full=True)

    assert (report.findings, report.errors) == ([], {})
    assert lines("audit.finding") == []


@pytest.mark.parametrize("microseconds", [0, 1, 120_000, 999_999])
def test_the_database_and_python_agree_on_every_checksum(
    cast: Cast, audit: Audit, microseconds: int
) -> None:
    """The check computes it in SQL, the engine in Python; the texts of times are where they could differ."""
    task = fired(cast)
    for revision in (1, 2):
        notice(task.ticket, cast.agent, revision=revision)
    moment = database_now().replace(microsecond=microseconds) - timedelta(hours=1)
    TicketEvent.objects.filter(pk=task.evidence["event"]).update(created_at=moment)
    ReminderNotification.objects.update(created_at=moment, due_at=moment)
    event = TicketEvent.objects.get(pk=task.evidence["event"])
    ids = list(ReminderNotification.objects.order_by("pk").values_list("pk", flat=True))
    for named in ([], ids[:1], ids):
        proof = task.evidence | {
            "notifications": named,
            "checksum": firing_checksum(event, notices(ids=named)),
        }
        update_task(task.pk, evidence=proof)
        assert audit(codes=["unproven"]).findings == []

    update_task(task.pk, evidence=proof | {"checksum": "sha256:" + "0" * 64})
    assert [each.code for each in audit(codes=["unproven"]).findings] == ["unproven"]
