"""Publishing: which tasks Celery is told about, when, and in which messages.

The task row is the outbox. A message is a hint that carries ids and runs of one team; losing it costs
time, never a reminder: what is overdue, waiting and not published lately is published again.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from celery.exceptions import CeleryError
from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Greatest, Least
from kombu.exceptions import KombuError, OperationalError
from redis.exceptions import RedisError

from helpdesk.celery import app
from helpdesk.clock import database_now
from reminders import broker
from reminders.models import Task
from reminders.states import TaskStatus

log = structlog.get_logger(__name__)

# However long a task has been overdue, it is published again at least this often.
RESEND_CAP = timedelta(seconds=60)
# Longer than the dispatcher ever lets pass before it publishes again: whatever waits longer was forgotten.
FORGOTTEN_AFTER = 2 * RESEND_CAP
# Rows one dispatch transaction locks while it publishes.
BATCH = 2_000

_BROKER_ERRORS = (OperationalError, KombuError, CeleryError, RedisError, OSError)


class BrokerRefused(Exception):
    """The broker did not take a message."""


@dataclass(frozen=True, slots=True)
class Hint:
    """What a message says of one task. `alone`: it has failed before and must not share a transaction."""

    team_id: int
    task_id: int
    run: int
    at: datetime
    alone: bool


def hint(task: Task) -> Hint:
    assert task.available_at is not None
    return Hint(task.team_id, task.pk, task.run, task.available_at, alone=task.attempts > 0)


def publish_on_commit(hints: Sequence[Hint], *, now: datetime) -> None:
    """Publish after the commit what is due within the horizon; beat takes care of the rest.

    A broker that is down is logged and nothing else: the request that got here has succeeded.
    """
    near = [each for each in hints if each.at <= now + settings.REMINDER_HORIZON]
    if near:
        transaction.on_commit(lambda: _publish_now(near, now), robust=True)


def dispatch_due() -> int:
    """Publish every waiting task that has come within the horizon or whose message seems lost. Returns how many.

    Published before marked: a crash in between repeats a message, which is harmless; the other order
    would lose it. SKIP LOCKED lets several dispatchers share the work.
    """
    total = 0
    while True:
        with transaction.atomic(durable=True):
            now = database_now()
            tasks = list(
                Task.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
                .filter(_to_publish(now))
                .only("id", "team_id", "run", "available_at", "attempts")
                .order_by("available_at", "id")[:BATCH]
            )
            sent = _publish([hint(task) for task in tasks], now)
            Task.objects.filter(pk__in=sent).update(dispatched_at=now)
        total += len(sent)
        if len(sent) < BATCH:
            return total


def publish_again(tasks: Sequence[Task], *, now: datetime) -> None:
    """Publish these overdue tasks, which the caller has locked, at once. Raises `BrokerRefused` and marks nothing."""
    sent = _publish([hint(task) for task in tasks], now)
    if len(sent) < len(tasks):
        raise BrokerRefused
    Task.objects.filter(pk__in=sent).update(dispatched_at=now)


def request_audit(team_id: int) -> None:
    """Have the team audited in a moment, because tasks have completed. Many requests make one audit.

    Whoever asks first schedules it; whoever asks before it has begun is covered by it. The broker is
    only asked: without an answer the periodic audit comes anyway.
    """
    wait = settings.AUDIT_DEBOUNCE
    try:
        if not broker.claim(f"helpdesk:audit:{team_id}", wait):
            return
        app.send_task(
            "reminders.audit_team",
            args=[team_id],
            countdown=wait.total_seconds(),
            expires=(wait + settings.AUDIT_PERIOD).total_seconds(),
            retry=False,
        )
    except _BROKER_ERRORS as error:
        log.warning("audit.request_failed", team=team_id, error=str(error))


def _to_publish(now: datetime) -> Q:
    """Due within the horizon and never published; or overdue and published too long ago to be merely queued.

    The wait before the next repeat grows with the delay, up to a cap: while all workers are away a
    backlog is not multiplied every few seconds.
    """
    lateness = now - F("available_at")
    patience = Least(Greatest(lateness / 2, settings.REMINDER_RESEND_AFTER), RESEND_CAP)
    lost = Q(
        available_at__lt=now - settings.REMINDER_RESEND_AFTER, dispatched_at__lt=now - patience
    )
    return Q(status=TaskStatus.WAITING, available_at__lte=now + settings.REMINDER_HORIZON) & (
        Q(dispatched_at__isnull=True) | lost
    )


def _publish_now(hints: Sequence[Hint], now: datetime) -> None:
    sent = _publish(hints, now)
    # In order and skipping what is locked: this only saves a repeat, it must not wait for anybody.
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE reminders_task SET dispatched_at = clock_timestamp() WHERE id IN ("
            " SELECT id FROM reminders_task WHERE id = ANY(%s) AND status = 'WAITING'"
            " ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)",
            [sent],
        )


def _publish(hints: Iterable[Hint], now: datetime) -> list[int]:
    """Send the messages and return the ids of the tasks they carry. Stops at the first that the broker refuses."""
    sent: list[int] = []
    for team_id, group in _messages(hints):
        # Relative to the database's clock, which may not be this machine's.
        wait = (max(each.at for each in group) - now).total_seconds()
        try:
            app.send_task(
                "reminders.process",
                args=[team_id, [[each.task_id, each.run] for each in group]],
                countdown=wait if wait > 0 else None,
                retry=False,
            )
        except _BROKER_ERRORS as error:
            log.warning("reminder.publish_failed", team=team_id, tasks=len(group), error=str(error))
            break
        sent += [each.task_id for each in group]
        log.debug("reminder.published", team=team_id, tasks=len(group), wait_s=round(wait, 3))
    return sent


def _messages(hints: Iterable[Hint]) -> Iterable[tuple[int, list[Hint]]]:
    """One team and one due second to a message, so a thousand reminders at nine o'clock are a few messages."""
    groups: dict[tuple[int, datetime, int | None], list[Hint]] = defaultdict(list)
    for each in hints:
        second = each.at.replace(microsecond=0)
        groups[each.team_id, second, each.task_id if each.alone else None].append(each)
    size = settings.REMINDER_SET_SIZE
    for (team_id, _second, _alone), group in groups.items():
        for start in range(0, len(group), size):
            yield team_id, group[start : start + size]
