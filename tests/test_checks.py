"""System checks refuse the settings under which reminders come late, twice or never."""

from datetime import timedelta
from typing import Any

import pytest

from helpdesk import checks
from helpdesk.celery import app


def found() -> set[str | None]:
    return {message.id for message in checks.check_celery()}


def test_the_settings_as_they_are_pass() -> None:
    assert found() == set()


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("REMINDER_HORIZON", timedelta(seconds=361), "reminders.E001"),
        ("REMINDER_HORIZON", timedelta(hours=24), "reminders.E001"),
        ("REMINDER_LEASE", timedelta(seconds=90), "reminders.E004"),
        ("REMINDER_DISPATCH_PERIOD", timedelta(seconds=60), "reminders.E008"),
        ("TIME_ZONE", "Europe/Berlin", "reminders.E006"),
        ("AUDIT_SLICE", 0, "reminders.E009"),
        ("AUDIT_PERIOD", timedelta(0), "reminders.E009"),
        ("AUDIT_KEEP", timedelta(days=-1), "reminders.E009"),
        ("AUDIT_DEBOUNCE", timedelta(seconds=-1), "reminders.E009"),
    ],
)
def test_unsafe_settings_are_refused(settings: Any, name: str, value: Any, problem: str) -> None:
    setattr(settings, name, value)

    assert problem in found()


def test_the_horizon_may_be_a_tenth_of_the_visibility_timeout(settings: Any) -> None:
    settings.REMINDER_HORIZON = timedelta(seconds=360)

    assert found() == set()


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("task_acks_late", False, "reminders.E002"),
        ("task_reject_on_worker_lost", False, "reminders.E002"),
        ("worker_prefetch_multiplier", 4, "reminders.E003"),
        ("task_time_limit", None, "reminders.E004"),
        ("task_soft_time_limit", 120, "reminders.E004"),
        ("worker_eta_task_limit", None, "reminders.E007"),
        ("enable_utc", False, "reminders.E006"),
        ("beat_schedule", {}, "reminders.E005"),
    ],
)
def test_unsafe_worker_settings_are_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: Any, problem: str
) -> None:
    monkeypatch.setitem(app.conf, name, value)

    assert problem in found()


def test_an_old_database_is_refused(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.check_postgresql(databases=["default"]) == []
    monkeypatch.setattr(checks, "OLDEST_POSTGRESQL", 99)
    (problem,) = checks.check_postgresql(databases=["default"])
    assert problem.id == "helpdesk.E001"
