"""From a hint to a reminder, through two gates. A set of tasks of one team at a time; one task is a set of one.

1. Gate 1 and claim (`claim`): one statement takes the lease, or nothing is written.
2. Gate 2 (`fire`), one transaction under the team lock: look again at everything that may have
   changed since the task was planned, ask who is responsible now, and commit notices, history,
   version and the completed task together, or none of them.

Whoever calls too early, twice, at once with somebody else, or with a hint of last week gets the same
outcome as a single call on time.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from helpdesk.clock import database_now
from helpdesk.errors import Busy
from notifications import services as notices
from reminders import evidence, moves, outbox
from reminders.models import Task
from reminders.moves import Move
from reminders.recipients import responsible_for
from reminders.schedule import skipped, why_obsolete
from reminders.states import Cause, SkipReason, TaskStatus
from tickets import history
from tickets.locks import locked_team, team_lane
from tickets.models import Ticket, TicketEvent
from tickets.states import EventKind

log = structlog.get_logger(__name__)


class TeamBusy(Exception):
    """Somebody else holds the team: its reminders are being fired, or its row is locked. Come back in a moment."""


class LeaseLost(Exception):
    """Somebody took a task over between its claim and the commit. Everything was rolled back."""


class NotDueYet(Exception):
    """A reminder was asked for before its time. It waits again; `at` is when to come back."""

    def __init__(self, at: datetime) -> None:
        super().__init__(f"reminder not due yet: {at.isoformat()}")
        self.at = at


def process(*, team_id: int, hints: Sequence[tuple[int, int]]) -> None:
    """Fire what these (task id, run) hints name, as far as it is due and still wanted.

    Raises `TeamBusy` if the same hints should be brought again in a moment, `NotDueYet` after the rest
    of the set was committed.
    """
    with team_lane(team_id) as free:
        if not free:
            raise TeamBusy
        lease = claim(team_id=team_id, hints=hints)
        if lease is not None:
            settle(team_id=team_id, task_ids=[task_id for task_id, _run in hints], lease=lease)
            outbox.request_audit(team_id)


def claim(*, team_id: int, hints: Sequence[tuple[int, int]]) -> uuid.UUID | None:
    """Gate 1. The lease on those tasks that are still WAITING or RUNNING in that run, None if there are none."""
    lease = uuid.uuid4()
    claimed = moves.claim(team_id=team_id, hints=hints, lease=lease, ttl=settings.REMINDER_LEASE)
    return lease if claimed else None


def settle(*, team_id: int, task_ids: Sequence[int], lease: uuid.UUID) -> None:
    """Fire the set; when it fails, fire its halves, so that one bad row holds back nothing but itself.

    A set of one that fails counts an attempt. A lost lease marks nothing: the tasks that are still
    ours are fired at once instead of waiting for their lease to expire.
    """
    early: NotDueYet | None = None
    pending = [list(task_ids)]
    while pending:
        part = pending.pop()
        try:
            fire(team_id=team_id, task_ids=part, lease=lease)
        except NotDueYet as error:
            early = error
        except Busy:
            # Not the tasks' fault: come again with the whole set, whose lease is still ours to take.
            raise TeamBusy from None
        except LeaseLost:
            if ours := list(_held(part, lease).values_list("id", flat=True)):
                pending.append(ours)
        except Exception as error:  # noqa: BLE001  whatever it is, it is counted and logged
            if len(part) == 1:
                _count_attempt(part[0], lease, error)
            else:
                log.warning("reminder.set_failed", team=team_id, tasks=len(part), error=repr(error))
                middle = len(part) // 2
                pending += [part[middle:], part[:middle]]
    if early:
        raise early


def fire(*, team_id: int, task_ids: Sequence[int], lease: uuid.UUID) -> None:
    """Gate 2 and the commit, in a number of queries that does not grow with the set."""
    with locked_team(team_id):
        tasks = list(_held(task_ids, lease))
        if not tasks:
            return
        now = database_now()
        firings, steps = _look_again(team_id, tasks, now)
        steps += _remind(team_id, firings)
        if moves.move(steps, now=now) != len(steps):
            raise LeaseLost
        early = [step.available_at for step in steps if step.cause == Cause.NOT_DUE]
        outbox.publish_on_commit(
            [outbox.hint(step.task) for step in steps if step.cause == Cause.NOT_DUE], now=now
        )
        transaction.on_commit(lambda: _log_outcome(team_id, steps), robust=True)
    if early:
        raise NotDueYet(min(at for at in early if at))


def _held(task_ids: Sequence[int], lease: uuid.UUID) -> QuerySet[Task]:
    """Those of the tasks whose lease is still ours; the rest belongs to somebody else by now."""
    return Task.objects.filter(
        pk__in=task_ids, execution_id=lease, status=TaskStatus.RUNNING
    ).order_by("id")


@dataclass(frozen=True, slots=True)
class _Firing:
    task: Task
    ticket: Ticket
    due_at: datetime


def _look_again(
    team_id: int, tasks: Sequence[Task], now: datetime
) -> tuple[list[_Firing], list[Move]]:
    """Gate 2: which tasks still stand for the ticket's present intent and are due. The others end or wait."""
    tickets = Ticket.objects.in_bulk({task.ticket_id for task in tasks})
    sent = set(
        TicketEvent.objects.filter(ticket__in=tickets, kind=EventKind.TIMEOUT_REMINDED).values_list(
            "ticket_id", "reminder_revision"
        )
    )
    firings: list[_Firing] = []
    steps: list[Move] = []
    for task in tasks:
        ticket = tickets.get(task.ticket_id)
        if ticket is None or ticket.team_id != team_id:
            steps.append(
                skipped(task, SkipReason.TICKET_MISSING, ticket_version=None, revision=None)
            )
        elif reason := why_obsolete(task, ticket) or _already(ticket, sent):
            steps.append(
                skipped(
                    task,
                    reason,
                    ticket_version=ticket.version,
                    revision=ticket.reminder_revision,
                )
            )
        elif (at := _not_before(task, ticket)) > now:
            task.available_at = at
            steps.append(
                Move(task=task, to=TaskStatus.WAITING, cause=Cause.NOT_DUE, available_at=at)
            )
        else:
            assert ticket.due_at is not None
            firings.append(_Firing(task, ticket, ticket.due_at))
    return firings, steps


def _already(ticket: Ticket, sent: set[tuple[int, int]]) -> SkipReason | None:
    return SkipReason.ALREADY_SENT if (ticket.pk, ticket.reminder_revision) in sent else None


def _not_before(task: Task, ticket: Ticket) -> datetime:
    """The ticket says when; after a failure the task says when to try again."""
    assert ticket.due_at is not None
    if task.attempts and task.available_at:
        return max(ticket.due_at, task.available_at)
    return ticket.due_at


def _remind(team_id: int, firings: Sequence[_Firing]) -> list[Move]:
    """Write event, version and notices for each firing; returns the moves that complete the tasks with their evidence."""
    if not firings:
        return []
    responsible = responsible_for(team_id=team_id, tickets=[each.ticket for each in firings])
    # Read again: lateness is counted to the commit, and gate 2 of a large set takes its time.
    fired_at = database_now()
    late_ms = {each.ticket.pk: milliseconds(fired_at - each.due_at) for each in firings}
    events = history.record_changes(
        tickets=[each.ticket for each in firings],
        kind=EventKind.TIMEOUT_REMINDED,
        actor=None,
        now=fired_at,
        data={
            each.ticket.pk: {
                "due_at": each.due_at.isoformat(),
                "late_ms": late_ms[each.ticket.pk],
                "recipients": [
                    {"user": recipient.user_id, "name": recipient.name, "why": recipient.why}
                    for recipient in responsible[each.ticket.pk]
                ],
            }
            for each in firings
        },
    )
    delivered = notices.deliver(
        [
            notices.Delivery(
                ticket_id=each.ticket.pk,
                reminder_revision=each.ticket.reminder_revision,
                user_id=recipient.user_id,
                why=recipient.why,
                note=each.ticket.reminder_note,
                due_at=each.due_at,
                late_ms=late_ms[each.ticket.pk],
            )
            for each in firings
            for recipient in responsible[each.ticket.pk]
        ],
        now=fired_at,
    )
    return [
        _fired(
            each,
            evidence.of_firing(
                event=event,
                notices=(rows := delivered.get(each.ticket.pk, [])),
                planned=[recipient.user_id for recipient in responsible[each.ticket.pk]],
                created=sum(row.created_at == fired_at for row in rows),
                due_at=each.due_at,
                late_ms=late_ms[each.ticket.pk],
            ),
        )
        for each, event in zip(firings, events, strict=True)
    ]


def _fired(firing: _Firing, proof: dict[str, object]) -> Move:
    return Move(
        task=firing.task,
        to=TaskStatus.COMPLETED,
        cause=Cause.FIRED,
        summary=evidence.stored_summary(proof),
        evidence=proof,
    )


def _count_attempt(task_id: int, lease: uuid.UUID, error: Exception) -> None:
    """After a rollback: put the task back with a delay, or give up after the last attempt. Only if it is still ours."""
    with transaction.atomic(durable=True):
        task = _held([task_id], lease).first()
        if task is None:
            return
        now = database_now()
        attempts = task.attempts + 1
        gave_up = attempts >= settings.REMINDER_MAX_ATTEMPTS
        step = Move(
            task=task,
            to=TaskStatus.FAILED if gave_up else TaskStatus.WAITING,
            cause=Cause.GAVE_UP if gave_up else Cause.ATTEMPT_FAILED,
            detail=f"{type(error).__name__}: {error}"[:2000],
            attempts=attempts,
            available_at=None if gave_up else now + backoff(attempts),
        )
        if moves.move([step], now=now) and not gave_up:
            task.available_at, task.attempts = step.available_at, attempts
            outbox.publish_on_commit([outbox.hint(task)], now=now)
    log.error(
        "reminder.gave_up" if gave_up else "reminder.attempt_failed",
        task=task_id,
        ticket=task.ticket_id,
        attempt=attempts,
        exc_info=error,
    )


def backoff(attempts: int) -> timedelta:
    """The wait after that many failures: doubled each time, up to a cap."""
    doublings = min(attempts - 1, 20)  # Far beyond the cap; more would overflow a timedelta.
    first: timedelta = settings.REMINDER_BACKOFF
    cap: timedelta = settings.REMINDER_BACKOFF_CAP
    return min(first * (1 << doublings), cap)


def milliseconds(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)


def _log_outcome(team_id: int, steps: Sequence[Move]) -> None:
    for step in steps:
        proof = step.evidence or {}
        event = (
            f"reminder.{step.cause.lower()}"  # reminder.fired, reminder.skipped, reminder.not_due
        )
        log.info(
            event,
            task=step.task.pk,
            run=step.task.run,
            team=team_id,
            ticket=step.task.ticket_id,
            **{key: proof[key] for key in ("reason", "planned", "late_ms") if key in proof},
        )
