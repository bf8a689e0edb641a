"""An audit that is killed at any step, and run again, leaves the same as one that was not."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection

from helpdesk.celery import app
from notifications.models import ReminderNotification
from reminders.audit import runner
from reminders.models import AuditRun, Finding, Task
from reminders.states import Trigger
from tests.cast import Cast, make_cast
from tests.reminders.audit import anomalies
from tests.stack.conftest import wait_until


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


# In the order in which an audit goes through them.
STEPS = [
    ("reminders.audit.runner", "look", "before"),
    ("reminders.audit.runner", "look", "after"),
    ("reminders.audit.record", "_upsert", "after"),  # Written, not committed.
    ("reminders.audit.record", "write", "after"),  # Recorded, and the gone ones closed.
    ("reminders.audit.repair", "look_again", "after"),
    ("reminders.audit.record", "settle", "before"),  # Mended, not noted, not committed.
    ("reminders.audit.record", "settle", "after"),  # Noted, not committed.
    ("reminders.audit.repair", "mend", "after"),  # The first is mended, the others are not.
    ("reminders.audit.runner", "_finish", "before"),  # All mended; the run has no end.
]


def disorder(cast: Cast) -> None:
    """Three things to mend, one that waits for a person, and one recorded earlier that is gone."""
    gone = anomalies.published_tomorrow(cast)
    runner.audit(trigger=Trigger.COMMAND)
    anomalies.update_task(gone, dispatched_at=None)
    anomalies.completion_was_lost(cast)
    anomalies.worker_vanished(cast)
    anomalies.message_lost(cast)
    anomalies.changed_behind_its_back(version=9)(cast)


def audit_killed_at(step: tuple[str, str, str]) -> None:
    database = settings.DATABASES["default"]
    url = (
        f"postgres://{quote(database['USER'])}:{quote(database['PASSWORD'])}"
        f"@{database['HOST']}:{database['PORT']}/{quote(database['NAME'])}"
    )
    child = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("audit_until.py")), *step],
        cwd=settings.BASE_DIR,
        env={
            **os.environ,
            "PYTHONPATH": str(settings.BASE_DIR),
            "DJANGO_SETTINGS_MODULE": "helpdesk.settings",
            "DATABASE_URL": url,
            "REDIS_URL": app.conf.broker_url,
            "SECRET_KEY": "killed",
        },
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    # Its locks die with its session, as soon as the server notices.
    wait_until(lambda: not advisory_locks(), "the session of the killed audit ended")


def advisory_locks() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
            " WHERE locktype = 'advisory' AND datname = current_database()"
        )
        return int(cursor.fetchone()[0])


def state() -> dict[str, Any]:
    """Everything that matters afterwards: not which run did it, and how often it was seen."""
    return {
        "findings": sorted(
            (row.code, row.verdict, row.action, row.closed_at is None)
            for row in Finding.objects.all()
        ),
        "tasks": sorted(
            (task.status, task.run, task.attempts, (task.evidence or {}).get("outcome", ""))
            for task in Task.objects.all()
        ),
        "history": sorted(Task.objects.values_list("transitions__cause", flat=True)),
        "notices": ReminderNotification.objects.count(),
    }


EXPECTED = {
    "findings": [
        ("expired_lease", "CERTAIN", "REQUEUED", False),
        ("finished_but_active", "CERTAIN", "COMPLETED", False),
        ("impossible_times", "AMBIGUOUS", "", False),
        ("message_lost", "CERTAIN", "PUBLISHED", False),
        ("unexplained", "AMBIGUOUS", "", True),
    ],
    "tasks": [
        ("COMPLETED", 1, 0, "fired"),
        ("WAITING", 1, 0, ""),
        ("WAITING", 1, 0, ""),
        ("WAITING", 1, 0, ""),
        ("WAITING", 2, 1, ""),
    ],
    "history": sorted(["PLANNED"] * 5 + ["CLAIMED", "FIRED", "PROVEN"] + ["LEASE_EXPIRED"]),
    "notices": 1,
}


def test_an_audit_that_is_not_killed(cast: Cast) -> None:
    disorder(cast)

    runner.audit(trigger=Trigger.COMMAND)

    assert state() == EXPECTED


@pytest.mark.stack
@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step[2]} {step[1]}")
def test_killed_and_run_again_it_ends_in_the_same_state(
    cast: Cast, step: tuple[str, str, str]
) -> None:
    disorder(cast)
    audit_killed_at(step)

    runner.audit(trigger=Trigger.COMMAND)

    assert state() == EXPECTED
    # The interrupted run stays, without an end, unless it was never committed.
    interrupted = AuditRun.objects.filter(finished_at=None).count()
    assert interrupted == (0 if step[1] in ("look", "_upsert") else 1)
