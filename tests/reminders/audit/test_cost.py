"""What a scan costs follows what is active and recent, not what is stored."""

from datetime import timedelta

import pytest
from django.db import connection

from reminders.audit import runner
from reminders.audit.runner import Report
from reminders.models import Task
from reminders.states import Trigger
from tests.bench.plans import plan_of, sent_by
from tests.bench.stored import make_history, make_teams
from tests.cast import Cast
from tests.factories import age
from tests.reminders.audit import anomalies
from tickets import services


def beat() -> Report:
    return runner.audit(trigger=Trigger.BEAT)


@pytest.fixture
def long_history(db: None) -> None:
    """20,000 stored tasks, and 30 that wait."""
    staff = make_teams(3)
    make_history(staff, tasks=20_000)
    for number in range(30):
        of = staff[number % 3]
        services.create_ticket(
            team_id=of.customer.team_id,
            actor_id=of.customer.user_id,
            title="Printer on fire",
            description="It burns.",
        )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def test_no_statement_of_the_periodic_scan_reads_stored_history_from_end_to_end(
    long_history: None,
) -> None:
    report = beat()  # The first of a session prepares its statements.
    assert (report.findings, report.errors) == ([], {})
    assert Task.objects.count() == 20_030

    plans = {statement: plan_of(statement) for statement in sent_by(beat)}

    assert len(plans) > 20
    # The control: a plan that does is recognised.
    assert plan_of("SELECT max(attempts) FROM reminders_task WHERE run > 0").reads_history_whole
    assert [
        (statement, plan.scans) for statement, plan in plans.items() if plan.reads_history_whole
    ] == []


def test_a_full_audit_of_a_long_history_finds_nothing(long_history: None) -> None:
    """Which also says that the history made for measuring is a true one."""
    report = runner.audit(trigger=Trigger.COMMAND, full=True)

    assert (report.findings, report.errors) == ([], {})
    assert report.rows == 20_030 + 10_030 + 10_000


def test_a_clean_scan_takes_as_many_trips_for_many_rows_as_for_few(cast: Cast) -> None:
    anomalies.fired(cast)
    beat()
    few = beat()
    for _number in range(6):
        anomalies.fired(cast)
        anomalies.assigned(cast)
        age(anomalies.assigned(cast), timedelta(hours=1))
    many = beat()

    assert (many.findings, many.errors) == ([], {})
    assert many.rows > few.rows + 30
    assert many.statements == few.statements < 15
