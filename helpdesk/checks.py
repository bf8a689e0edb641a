"""System checks that refuse settings under which reminders come late, twice or never."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connection

# Celery's clock, Redis's delivery and a slow network need room between the two.
HORIZON_SHARE = 10
OLDEST_POSTGRESQL = 15


@register("reminders")
def check_celery(**_kwargs: Any) -> list[CheckMessage]:
    from helpdesk.celery import app

    return list(_unsafe(app.conf))


def _unsafe(conf: Any) -> Iterator[CheckMessage]:
    horizon = settings.REMINDER_HORIZON.total_seconds()
    visibility = conf.broker_transport_options.get("visibility_timeout", 3600)
    if horizon * HORIZON_SHARE > visibility:
        yield Error(
            f"REMINDER_HORIZON ({horizon:g} s) is not far below BROKER_VISIBILITY_TIMEOUT ({visibility:g} s).",
            hint=f"Keep the horizon at a {HORIZON_SHARE}th of it or less: a message held longer than "
            "the visibility timeout is delivered again to another worker.",
            id="reminders.E001",
        )
    if not (conf.task_acks_late and conf.task_reject_on_worker_lost):
        yield Error(
            "task_acks_late and task_reject_on_worker_lost must be on.",
            hint="Otherwise a killed worker takes its message with it and the task waits for its lease.",
            id="reminders.E002",
        )
    if conf.worker_prefetch_multiplier != 1:
        yield Error(
            "worker_prefetch_multiplier must be 1.",
            hint="A worker that hoards messages delays other teams' reminders.",
            id="reminders.E003",
        )
    soft, hard = conf.task_soft_time_limit, conf.task_time_limit
    lease = settings.REMINDER_LEASE.total_seconds()
    if not (soft and hard and soft < hard < lease):
        yield Error(
            f"REMINDER_SOFT_TIME_LIMIT < REMINDER_HARD_TIME_LIMIT < REMINDER_LEASE does not hold ({soft}, {hard}, {lease}).",
            hint="A lease that ends before the worker is stopped is recovered while its work goes on.",
            id="reminders.E004",
        )
    wanted = {"reminders.dispatch", "reminders.recover", "reminders.audit", "reminders.prune"}
    if missing := wanted - {entry["task"] for entry in conf.beat_schedule.values()}:
        yield Error(
            f"The beat schedule lacks {', '.join(sorted(missing))}.",
            hint="Without them reminders beyond the horizon are never published, and inconsistencies never found.",
            id="reminders.E005",
        )
    if not (settings.USE_TZ and settings.TIME_ZONE == "UTC" and conf.enable_utc):
        yield Error(
            "USE_TZ must be on and TIME_ZONE and Celery must be in UTC.",
            hint="Instants are stored in UTC; zones are for showing.",
            id="reminders.E006",
        )
    if not conf.worker_eta_task_limit:
        yield Error(
            "worker_eta_task_limit must be set.",
            hint="Messages held for their eta would fill the worker's memory.",
            id="reminders.E007",
        )
    if settings.REMINDER_DISPATCH_PERIOD >= settings.REMINDER_HORIZON:
        yield Error(
            "REMINDER_DISPATCH_PERIOD must be shorter than REMINDER_HORIZON.",
            hint="Otherwise a reminder can come due between two looks and is published late.",
            id="reminders.E008",
        )
    spans = (settings.AUDIT_PERIOD, settings.AUDIT_PRUNE_PERIOD, settings.AUDIT_KEEP)
    if (
        settings.AUDIT_SLICE < 1
        or min(spans) <= timedelta(0)
        or timedelta(0) > settings.AUDIT_DEBOUNCE
    ):
        yield Error(
            "AUDIT_SLICE must be at least 1, and the audit's periods and AUDIT_KEEP_DAYS above 0.",
            hint="Without a slice, stored rows are never looked at again; without a time to keep them, "
            "history is deleted as soon as it is written.",
            id="reminders.E009",
        )


@register(Tags.database)
def check_postgresql(**kwargs: Any) -> list[CheckMessage]:
    if "default" not in (kwargs.get("databases") or ()):
        return []
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        version = int(cursor.fetchone()[0]) // 10_000
    if version >= OLDEST_POSTGRESQL:
        return []
    return [
        Error(
            f"PostgreSQL {version} is too old; {OLDEST_POSTGRESQL} or newer is needed.",
            id="helpdesk.E001",
        )
    ]
