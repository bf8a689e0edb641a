"""The Celery app and every worker setting that matters, each with the fault it answers.

Messages are hints ("look at task 7, run 2, at 10:00"). Any of them may be lost, repeated, early or
stale without changing what happens, so the settings below buy punctuality, never correctness.
"""

import os
from typing import Any

from celery import Celery, Task
from kombu import Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "helpdesk.settings")

from celery.signals import task_prerun
from django.conf import settings
from django.db import close_old_connections

from helpdesk import transport

QUEUES = ("reminders", "dispatch", "audit", "default")

transport.install()
app = Celery("helpdesk")
app.conf.update(
    broker_url=settings.REDIS_URL,
    # No results are kept: the outcome of a task is its row in PostgreSQL.
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    enable_utc=True,
    timezone="UTC",
    # Reminders have a queue of their own, so that no other kind of work can delay them; the short
    # jobs that feed it have another, so that a burst of reminders cannot delay those; the audit, which
    # may take a second, a third.
    task_default_queue="default",
    # Each with a key of its own: queues that share one would each get a copy of every message.
    task_queues=[Queue(name, routing_key=name) for name in QUEUES],
    task_routes={
        "reminders.process": {"queue": "reminders"},
        "reminders.dispatch": {"queue": "dispatch"},
        "reminders.recover": {"queue": "dispatch"},
        "reminders.audit": {"queue": "audit"},
        "reminders.audit_team": {"queue": "audit"},
        "reminders.prune": {"queue": "audit"},
    },
    # A worker killed in the middle: the message is acknowledged only after the work, and given back
    # when the child process dies, so another worker takes the task over at once.
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    # A worker that hoards: with 1 each process holds one message, so a slow set delays no other.
    worker_prefetch_multiplier=1,
    # Messages held for their eta cost the worker memory; beyond this they stay at the broker.
    worker_eta_task_limit=2_000,
    # A hung task: stopped softly, then hard, always before its lease expires.
    task_soft_time_limit=settings.REMINDER_SOFT_TIME_LIMIT.total_seconds(),
    task_time_limit=settings.REMINDER_HARD_TIME_LIMIT.total_seconds(),
    # A deployment: running work may finish, what is only held goes back to the broker.
    worker_soft_shutdown_timeout=10.0,
    worker_enable_soft_shutdown_on_idle=True,
    # The broker is away: keep trying, for ever, at start-up too. Work that is already running is left
    # to finish: its commit needs PostgreSQL alone, and a repeat of the message is harmless.
    broker_connection_retry=True,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    broker_transport_options={
        # Far above the dispatch horizon (a system check insists), or held messages come twice.
        "visibility_timeout": settings.BROKER_VISIBILITY_TIMEOUT.total_seconds(),
        # A broker that is down or does not answer must not hold a request or a dispatch. Without the
        # first, Kombu tries for six seconds to connect before it tells the publisher.
        "max_retries": 0,
        "socket_connect_timeout": settings.BROKER_SOCKET_TIMEOUT.total_seconds(),
        "socket_timeout": settings.BROKER_SOCKET_TIMEOUT.total_seconds(),
        "socket_keepalive": True,
        "health_check_interval": 10,
    },
    # Publishing is tried once: the row is the outbox, and the next dispatch tries again.
    task_publish_retry=False,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    beat_schedule={
        # A tick that could not run in time is dropped: the next one does the same work.
        "publish what comes due": {
            "task": "reminders.dispatch",
            "schedule": settings.REMINDER_DISPATCH_PERIOD,
            "options": {"expires": settings.REMINDER_DISPATCH_PERIOD.total_seconds()},
        },
        "recover expired leases": {
            "task": "reminders.recover",
            "schedule": settings.REMINDER_RECOVERY_PERIOD,
            "options": {"expires": settings.REMINDER_RECOVERY_PERIOD.total_seconds()},
        },
        "audit": {
            "task": "reminders.audit",
            "schedule": settings.AUDIT_PERIOD,
            "options": {"expires": settings.AUDIT_PERIOD.total_seconds()},
        },
        "prune what is old": {
            "task": "reminders.prune",
            "schedule": settings.AUDIT_PRUNE_PERIOD,
            "options": {"expires": settings.AUDIT_PRUNE_PERIOD.total_seconds()},
        },
    },
)
app.autodiscover_tasks(["reminders"])
# Celery would close the database's connection before and after every task. Instead it lives as long as
# a web process's would, and is looked at before every task; a worker's child renews it after so many.
app.conf.CELERY_DB_REUSE_MAX = 10_000


@task_prerun.connect
def look_at_the_connection(task: "Task[Any, Any]", **_kwargs: object) -> None:
    """Drop a connection that is broken or too old, so that the task gets a new one."""
    if not task.request.is_eager:  # Called in somebody else's transaction.
        close_old_connections()
