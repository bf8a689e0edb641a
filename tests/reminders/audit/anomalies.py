"""Every kind of inconsistency, made the way a bug, a script or a crash would: by writing past the services."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.db import connection

from helpdesk.clock import database_now
from notifications.models import ReminderNotification
from reminders import outbox
from reminders.models import Task, TaskTransition
from reminders.selectors import is_proven
from reminders.states import Action
from tests.cast import Cast
from tests.factories import act, active_task, age, open_ticket, run
from tickets import services
from tickets.models import Membership, Ticket, TicketEvent, TicketLink

LONG = timedelta(hours=25)  # Past the default deadline of a normal ticket.
ACTIVE_AGAIN = {"status": "WAITING", "evidence": None, "finished_at": None, "progress": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """What is brought about (returns the subject's id), what must be read from it, and what must have been done."""

    code: str
    make: Callable[[Cast], int]
    evidence: dict[str, Any]
    name: str = ""
    action: str = ""
    mended: Callable[[int], None] = lambda subject: None
    # Makes its times senseless, and which doubt must be noted then. Where nothing is ever repaired,
    # senseless times change nothing about that.
    nonsense: Callable[[int], Any] = lambda subject: None
    doubts: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.code} {self.name}".strip()


def tomorrow() -> Any:
    return database_now() + timedelta(days=1)


def assigned(cast: Cast) -> Ticket:
    return act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)


def fired(cast: Cast) -> Task:
    """A reminder that was sent to the agent, a day after the ticket came."""
    ticket = age(assigned(cast), LONG)
    task = active_task(ticket)
    run(task)
    task.refresh_from_db()
    assert task.status == "COMPLETED"
    return task


def update_task(pk: int, **values: Any) -> None:
    assert Task.objects.filter(pk=pk).update(**values) == 1


# --- In the queue though it is over ---------------------------------------------------------------
def completion_was_lost(cast: Cast) -> int:
    task = fired(cast)
    update_task(task.pk, **ACTIVE_AGAIN)
    return task.pk


def completed_from_proof(pk: int) -> None:
    task = Task.objects.get(pk=pk)
    assert (task.status, task.progress, task.evidence["outcome"]) == ("COMPLETED", 100, "fired")
    assert is_proven(task_id=pk)
    assert task.transitions.last().cause == "PROVEN"
    assert ReminderNotification.objects.count() == 1
    assert TicketEvent.objects.filter(kind="TIMEOUT_REMINDED").count() == 1


def proof_dated_before_the_task(pk: int) -> None:
    task = Task.objects.get(pk=pk)
    TicketEvent.objects.filter(ticket=task.ticket_id, kind="TIMEOUT_REMINDED").update(
        created_at=task.created_at - timedelta(hours=1)
    )


def proof_in_the_future(pk: int) -> None:
    TicketEvent.objects.filter(kind="TIMEOUT_REMINDED").update(created_at=tomorrow())


def proof_not_whole(pk: int) -> None:
    ReminderNotification.objects.all().delete()


def obsolete(finish: Callable[[Cast, Ticket], Any]) -> Callable[[Cast], int]:
    def make(cast: Cast) -> int:
        ticket = act(cast, services.start_ticket, assigned(cast))
        ticket = age(ticket, timedelta(hours=1))
        task = active_task(ticket)
        finish(cast, ticket)
        update_task(task.pk, **ACTIVE_AGAIN)
        return task.pk

    return make


def ended(reason: str) -> Callable[[int], None]:
    def check(pk: int) -> None:
        task = Task.objects.get(pk=pk)
        assert (task.status, task.evidence["reason"]) == ("COMPLETED", reason)
        assert not ReminderNotification.objects.exists()

    return check


def duplicated(cast: Cast) -> int:
    task = active_task(assigned(cast))
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX one_active_task_per_intent")
    copy = Task.objects.get(pk=task.pk)
    copy.pk = None
    copy.created_at += timedelta(seconds=1)
    copy.save(force_insert=True)
    return task.pk


def the_newest_is_kept(pk: int) -> None:
    old, new = Task.objects.order_by("pk")
    assert (old.pk, old.status, old.evidence["reason"]) == (pk, "COMPLETED", "DUPLICATE")
    assert new.status == "WAITING"


def the_newer_copy_is_older(pk: int) -> None:
    Task.objects.exclude(pk=pk).update(created_at=database_now() - timedelta(days=1))


# --- Missing or stuck -----------------------------------------------------------------------------
def never_planned(since: timedelta) -> Callable[[Cast], int]:
    def make(cast: Cast) -> int:
        ticket = age(assigned(cast), since)
        TaskTransition.objects.all().delete()
        Task.objects.all().delete()
        return ticket.pk

    return make


def planned(pk: int) -> None:
    ticket, task = Ticket.objects.get(pk=pk), Task.objects.get()
    assert (task.ticket_id, task.status, task.due_at, task.owner_id) == (
        pk,
        "WAITING",
        ticket.due_at,
        ticket.creator_id,
    )
    assert (task.reminder_revision, task.run) == (ticket.reminder_revision, 1)
    assert task.transitions.get().cause == "PLANNED"


def due_in_a_month(pk: int) -> None:
    Ticket.objects.filter(pk=pk).update(due_at=database_now() + timedelta(days=30))


def skipped_without_a_reason(cast: Cast) -> int:
    ticket = age(assigned(cast), timedelta(hours=1))
    update_task(
        active_task(ticket).pk,
        status="COMPLETED",
        evidence={"outcome": "skipped", "reason": "CANCELLED"},
        finished_at=database_now(),
        progress=100,
    )
    return ticket.pk


def replanned(pk: int) -> None:
    assert active_task(Ticket.objects.get(pk=pk)).run == 1


def evidence_says_sent(pk: int) -> None:
    Task.objects.update(evidence={"outcome": "fired"})


def due_moved(cast: Cast) -> int:
    """A script brought the ticket's due time forward, and forgot the task."""
    ticket = age(assigned(cast), timedelta(hours=1))
    Ticket.objects.filter(pk=ticket.pk).update(due_at=database_now() + timedelta(minutes=30))
    return active_task(ticket).pk


def replanned_for_the_ticket(pk: int) -> None:
    old, new = Task.objects.order_by("pk")
    assert (old.pk, old.status, old.evidence["reason"]) == (pk, "COMPLETED", "REPLACED")
    assert (new.status, new.due_at, new.owner_id) == ("WAITING", new.ticket.due_at, old.owner_id)
    assert new.reminder_revision == old.reminder_revision == new.ticket.reminder_revision


def ticket_due_in_a_month(pk: int) -> None:
    due_in_a_month(Task.objects.get(pk=pk).ticket_id)


def worker_vanished(cast: Cast) -> int:
    task = active_task(age(assigned(cast), LONG))
    update_task(
        task.pk,
        status="RUNNING",
        execution_id=uuid4(),
        started_at=database_now() - timedelta(minutes=50),
        lease_expires_at=database_now() - timedelta(minutes=48),
    )
    return task.pk


def requeued(pk: int) -> None:
    task = Task.objects.get(pk=pk)
    assert (task.status, task.run, task.attempts, task.execution_id) == ("WAITING", 2, 1, None)
    assert task.transitions.last().cause == "LEASE_EXPIRED"


def message_lost(cast: Cast) -> int:
    task = active_task(age(assigned(cast), LONG))
    update_task(task.pk, dispatched_at=database_now() - timedelta(hours=1))
    return task.pk


def published(pk: int) -> None:
    from reminders import broker

    task = Task.objects.get(pk=pk)
    assert broker.look().hints == [(task.team_id, pk, 1)]
    assert database_now() - task.dispatched_at < timedelta(minutes=1)


# --- Claims that do not hold ----------------------------------------------------------------------
def marked_complete(cast: Cast) -> int:
    ticket = age(assigned(cast), timedelta(hours=1))
    task = active_task(ticket)
    update_task(task.pk, status="COMPLETED", evidence={}, finished_at=database_now(), progress=100)
    return task.pk


def proof_changed(change: Callable[[Task], Any]) -> Callable[[Cast], int]:
    def make(cast: Cast) -> int:
        task = fired(cast)
        change(task)
        return task.pk

    return make


def skip_changed(cast: Cast) -> int:
    ticket = assigned(cast)
    task = active_task(ticket)
    act(cast, services.schedule_reminder, ticket, minutes=None)
    task.refresh_from_db()
    update_task(task.pk, evidence=task.evidence | {"reason": "RESOLVED"})
    return task.pk


def foreign_proof(cast: Cast) -> int:
    mine, other = fired(cast), fired(cast)
    update_task(mine.pk, evidence=other.evidence)
    return mine.pk


def finished_before_created(cast: Cast) -> int:
    task = fired(cast)
    update_task(task.pk, finished_at=task.created_at - timedelta(days=1), started_at=None)
    return task.pk


def started_after_end(cast: Cast) -> int:
    task = fired(cast)
    assert task.finished_at is not None
    update_task(
        task.pk, started_at=task.finished_at + timedelta(minutes=10), finished_at=task.finished_at
    )
    return task.pk


def published_tomorrow(cast: Cast) -> int:
    task = active_task(assigned(cast))
    update_task(task.pk, dispatched_at=tomorrow())
    return task.pk


def completed_four_times(cast: Cast) -> int:
    task = fired(cast)
    done = task.transitions.get(to_status="COMPLETED")
    for seconds in (1, 2, 3):
        TaskTransition.objects.create(
            task=task,
            run=done.run,
            from_status="RUNNING",
            to_status="COMPLETED",
            cause="FIRED",
            at=done.at + timedelta(seconds=seconds),
        )
    return task.pk


def told_without_a_trace(cast: Cast) -> int:
    ticket = assigned(cast)
    return notice(ticket, cast.agent, revision=7)


def stranger_told(cast: Cast) -> int:
    task = fired(cast)
    return notice(task.ticket, cast.stranger, revision=task.reminder_revision)


def customer_told(cast: Cast) -> int:
    task = fired(cast)
    return notice(task.ticket, cast.customer, revision=task.reminder_revision)


def notice(ticket: Ticket, to: Membership, *, revision: int) -> int:
    now = database_now()
    row = ReminderNotification.objects.create(
        ticket=ticket,
        user=to.user,
        reminder_revision=revision,
        why="ASSIGNEE",
        due_at=now,
        late_ms=0,
        created_at=now,
    )
    return row.pk


def notices_lost(cast: Cast) -> int:
    task = fired(cast)
    ReminderNotification.objects.filter(ticket=task.ticket_id).delete()
    return task.ticket_id


def nobody_left(cast: Cast) -> int:
    ticket = age(assigned(cast), LONG)
    Membership.objects.filter(pk=cast.agent.pk).update(role="CUSTOMER")
    task = active_task(ticket)
    run(task)
    return task.pk


# --- Tickets ----------------------------------------------------------------------------------------
def changed_behind_its_back(**values: Any) -> Callable[[Cast], int]:
    def make(cast: Cast) -> int:
        ticket = act(cast, services.start_ticket, assigned(cast))
        Ticket.objects.filter(pk=ticket.pk).update(**values)
        return ticket.pk

    return make


def event_removed(cast: Cast) -> int:
    ticket = act(cast, services.reply_to_ticket, assigned(cast), body="Hello")
    TicketEvent.objects.get(ticket=ticket, version=1).delete()
    return ticket.pk


def resolution_backdated(cast: Cast) -> int:
    ticket = act(cast, services.start_ticket, assigned(cast))
    ticket = act(cast, services.resolve_ticket, ticket, note="Done.")
    Ticket.objects.filter(pk=ticket.pk).update(resolved_at=ticket.resolved_at - timedelta(days=3))
    return ticket.pk


def resolved_while_blocked(cast: Cast) -> int:
    ticket = act(cast, services.start_ticket, assigned(cast))
    ticket = act(cast, services.resolve_ticket, ticket, note="Done.")
    blocker = open_ticket(cast)
    link(ticket, blocker, cast)
    return ticket.pk


def link(ticket: Ticket, blocker: Ticket, cast: Cast) -> None:
    TicketLink.objects.create(
        ticket=ticket,
        blocker=blocker,
        team=cast.team,
        created_by=cast.user("agent"),
        created_at=database_now(),
    )


# --- The broker -------------------------------------------------------------------------------------
def nobody_takes_messages(cast: Cast) -> int:
    task = active_task(age(assigned(cast), LONG))
    outbox.dispatch_due()
    run(task)
    update_task(task.pk, finished_at=database_now() - timedelta(minutes=30))
    return 0


ANOMALIES = [
    Anomaly(
        code="finished_but_active",
        make=completion_was_lost,
        evidence={"task.status": "WAITING", "task.run": 1, "event.version": 2},
        action=Action.COMPLETED,
        mended=completed_from_proof,
        nonsense=proof_dated_before_the_task,
        doubts=["proof_before_task", "proof_before_due"],
    ),
    Anomaly(
        code="finished_but_active",
        name="proof in the future",
        make=completion_was_lost,
        evidence={"task.status": "WAITING"},
        action=Action.COMPLETED,
        mended=completed_from_proof,
        nonsense=proof_in_the_future,
        doubts=["proof_in_future"],
    ),
    Anomaly(
        code="finished_but_active",
        name="proof not whole",
        make=completion_was_lost,
        evidence={"task.status": "WAITING"},
        action=Action.COMPLETED,
        mended=completed_from_proof,
        nonsense=proof_not_whole,
        doubts=["proof_not_whole"],
    ),
    *(
        Anomaly(
            code="obsolete",
            name=reason.lower(),
            make=obsolete(finish),
            evidence={
                "task.status": "WAITING",
                "task.reminder_revision": 0,
                "ticket.reminder_revision": revision,
                "ticket.status": status,
            },
            action=Action.ENDED,
            mended=ended(reason),
            nonsense=lambda pk: update_task(pk, created_at=tomorrow()),
            doubts=["task_after_change", "task_in_future"],
        )
        for reason, status, revision, finish in (
            (
                "RESOLVED",
                "RESOLVED",
                1,
                lambda cast, ticket: act(cast, services.resolve_ticket, ticket, note="Done."),
            ),
            (
                "CLOSED",
                "CLOSED",
                2,
                lambda cast, ticket: act(
                    cast,
                    services.close_ticket,
                    act(cast, services.resolve_ticket, ticket, note="Done."),
                ),
            ),
            (
                "CANCELLED",
                "IN_PROGRESS",
                1,
                lambda cast, ticket: act(cast, services.schedule_reminder, ticket, minutes=None),
            ),
            (
                "REPLACED",
                "IN_PROGRESS",
                1,
                lambda cast, ticket: act(cast, services.schedule_reminder, ticket, minutes=60),
            ),
        )
    ),
    Anomaly(
        code="duplicate",
        make=duplicated,
        evidence={"task.status": "WAITING", "task.reminder_revision": 0},
        action=Action.ENDED,
        mended=the_newest_is_kept,
        nonsense=the_newer_copy_is_older,
        doubts=["order_of_copies"],
    ),
    Anomaly(
        code="not_planned",
        name="due",
        make=never_planned(LONG),
        evidence={"ticket.status": "OPEN", "task.id": None, "ticket.reminder_revision": 0},
        action=Action.PLANNED,
        mended=planned,
        nonsense=due_in_a_month,
        doubts=["due_too_far"],
    ),
    Anomaly(
        code="not_planned",
        name="to come",
        make=never_planned(timedelta(hours=1)),
        evidence={"ticket.status": "OPEN", "task.id": None},
        action=Action.PLANNED,
        mended=planned,
        nonsense=lambda pk: Ticket.objects.filter(pk=pk).update(updated_at=tomorrow()),
        doubts=["ticket_in_future"],
    ),
    Anomaly(
        code="not_planned",
        name="skipped",
        make=skipped_without_a_reason,
        evidence={"task.status": "COMPLETED", "task.evidence.outcome": "skipped"},
        action=Action.PLANNED,
        mended=replanned,
        nonsense=evidence_says_sent,
        doubts=["evidence_of_sending"],
    ),
    Anomaly(
        code="wrong_time",
        make=due_moved,
        evidence={"task.status": "WAITING", "ticket.status": "OPEN", "ticket.version": 1},
        action=Action.PLANNED,
        mended=replanned_for_the_ticket,
        nonsense=ticket_due_in_a_month,
        doubts=["due_too_far"],
    ),
    Anomaly(
        code="expired_lease",
        make=worker_vanished,
        evidence={"task.status": "RUNNING", "task.run": 1, "task.attempts": 0},
        action=Action.REQUEUED,
        mended=requeued,
        nonsense=lambda pk: update_task(pk, started_at=tomorrow()),
        doubts=["started_in_future"],
    ),
    Anomaly(
        code="message_lost",
        make=message_lost,
        evidence={"task.status": "WAITING", "task.run": 1},
        action=Action.PUBLISHED,
        mended=published,
        nonsense=lambda pk: update_task(pk, dispatched_at=tomorrow()),
        doubts=["published_in_future"],
    ),
    Anomaly(
        code="unproven",
        name="marked by hand",
        make=marked_complete,
        evidence={"proof.problem": "no evidence", "task.evidence": {}},
        nonsense=lambda pk: update_task(pk, finished_at=tomorrow()),
    ),
    Anomaly(
        code="unproven",
        name="event changed",
        make=proof_changed(
            lambda task: TicketEvent.objects.filter(pk=task.evidence["event"]).update(
                created_at=database_now()
            )
        ),
        evidence={"proof.problem": "the checksum differs", "task.status": "COMPLETED"},
        nonsense=lambda pk: update_task(pk, finished_at=tomorrow()),
    ),
    Anomaly(
        code="unproven",
        name="notices removed",
        make=proof_changed(lambda task: ReminderNotification.objects.all().delete()),
        evidence={"proof.problem": "the checksum differs", "notice.id": []},
        nonsense=lambda pk: update_task(pk, finished_at=tomorrow()),
    ),
    Anomaly(
        code="unproven",
        name="event removed",
        make=proof_changed(
            lambda task: TicketEvent.objects.filter(pk=task.evidence["event"]).delete()
        ),
        evidence={"proof.problem": "its event does not exist", "event.id": None},
        nonsense=lambda pk: update_task(pk, finished_at=tomorrow()),
    ),
    Anomaly(
        code="unproven",
        name="evidence of no sense",
        make=proof_changed(
            lambda task: update_task(
                task.pk, evidence={"outcome": "fired", "event": 1e300, "notifications": "all"}
            )
        ),
        evidence={"proof.problem": "its event does not exist"},
        nonsense=lambda pk: update_task(pk, finished_at=tomorrow()),
    ),
    Anomaly(
        code="unproven",
        name="skip changed",
        make=skip_changed,
        evidence={"proof.problem": "the checksum differs"},
        nonsense=lambda pk: update_task(pk, finished_at=tomorrow()),
    ),
    Anomaly(
        code="unproven",
        name="of another task",
        make=foreign_proof,
        evidence={"proof.problem": "evidence of another reminder"},
        nonsense=lambda pk: update_task(pk, finished_at=tomorrow()),
    ),
    Anomaly(
        code="impossible_times",
        name="completed before it was created",
        make=finished_before_created,
        evidence={"task.status": "COMPLETED", "task.started_at": None},
        nonsense=lambda pk: update_task(pk, created_at=tomorrow()),
    ),
    Anomaly(
        code="impossible_times",
        name="started after it ended",
        make=started_after_end,
        evidence={"task.status": "COMPLETED"},
        nonsense=lambda pk: update_task(pk, created_at=tomorrow()),
    ),
    Anomaly(
        code="impossible_times",
        name="in the future",
        make=published_tomorrow,
        evidence={"task.status": "WAITING"},
        nonsense=lambda pk: update_task(pk, created_at=tomorrow()),
    ),
    Anomaly(
        code="completed_twice",
        make=completed_four_times,
        evidence={"transition.cause": ["FIRED"] * 4, "transition.run": [1] * 4},
        nonsense=lambda pk: update_task(pk, finished_at=tomorrow()),
    ),
    Anomaly(
        code="notice_without_event",
        make=told_without_a_trace,
        evidence={"notice.reminder_revision": 7, "event.id": None},
        nonsense=lambda pk: ReminderNotification.objects.filter(pk=pk).update(
            created_at=tomorrow()
        ),
    ),
    Anomaly(
        code="wrong_recipient",
        name="stranger",
        make=stranger_told,
        evidence={"membership.role": None, "notice.why": "ASSIGNEE"},
        nonsense=lambda pk: ReminderNotification.objects.filter(pk=pk).update(
            created_at=tomorrow()
        ),
    ),
    Anomaly(
        code="wrong_recipient",
        name="customer",
        make=customer_told,
        evidence={"membership.role": "CUSTOMER"},
        nonsense=lambda pk: ReminderNotification.objects.filter(pk=pk).update(
            created_at=tomorrow()
        ),
    ),
    Anomaly(
        code="event_without_notices",
        make=notices_lost,
        evidence={"event.reminder_revision": [0]},
        nonsense=lambda pk: TicketEvent.objects.filter(ticket=pk).update(created_at=tomorrow()),
    ),
    Anomaly(
        code="reached_nobody",
        make=nobody_left,
        evidence={"task.evidence.planned": []},
        nonsense=lambda pk: update_task(pk, finished_at=tomorrow()),
    ),
    *(
        Anomaly(
            code="unexplained",
            name=next(iter(values)),
            make=changed_behind_its_back(**values),
            evidence=evidence,
            nonsense=lambda pk: Ticket.objects.filter(pk=pk).update(updated_at=tomorrow()),
        )
        for values, evidence in (
            ({"status": "OPEN"}, {"ticket.status": "OPEN", "event.status": "IN_PROGRESS"}),
            ({"version": 9}, {"ticket.version": 9, "event.version": 2, "event.count": 3}),
            (
                {"reminder_revision": 3},
                {"ticket.reminder_revision": 3, "event.reminder_revision": 0},
            ),
        )
    ),
    Anomaly(
        code="unexplained",
        name="event removed",
        make=event_removed,
        evidence={"ticket.version": 2, "event.version": 2, "event.count": 2},
        nonsense=lambda pk: Ticket.objects.filter(pk=pk).update(updated_at=tomorrow()),
    ),
    Anomaly(
        code="unexplained",
        name="resolution date",
        make=resolution_backdated,
        evidence={"ticket.status": "RESOLVED", "event.status": "RESOLVED"},
        nonsense=lambda pk: Ticket.objects.filter(pk=pk).update(updated_at=tomorrow()),
    ),
    Anomaly(
        code="finished_while_blocked",
        make=resolved_while_blocked,
        evidence={"ticket.status": "RESOLVED", "blocker.number": [2], "blocker.status": ["OPEN"]},
        nonsense=lambda pk: Ticket.objects.filter(pk=pk).update(resolved_at=tomorrow()),
    ),
    Anomaly(
        code="stale_messages",
        make=nobody_takes_messages,
        evidence={"broker.messages": 1},
        nonsense=lambda pk: Task.objects.update(created_at=tomorrow()),
    ),
]
