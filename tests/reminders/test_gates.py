"""The two gates: which tasks still fire, which end, which wait, and which leave no trace."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from notifications.models import ReminderNotification
from reminders import processor
from reminders.models import Task, TaskTransition
from tests.cast import Cast
from tests.factories import act, active_task, make_due, open_ticket, run
from tickets import services
from tickets.models import Ticket, TicketEvent

ASSIGN, SET = services.assign_ticket, services.schedule_reminder


def due_ticket(cast: Cast, **fields: Any) -> tuple[Ticket, Task]:
    """A ticket assigned to the agent whose reminder has just come due."""
    ticket = act(cast, ASSIGN, open_ticket(cast, **fields), membership_id=cast.agent.pk)
    task = make_due(ticket)
    return ticket, task


def fired(ticket: Ticket) -> tuple[int, int]:
    """How many notices and how many system events there are."""
    return (
        ReminderNotification.objects.filter(ticket=ticket).count(),
        TicketEvent.objects.filter(ticket=ticket, kind="TIMEOUT_REMINDED").count(),
    )


def rows() -> Any:
    return (
        list(Task.objects.order_by("id").values()),
        list(TaskTransition.objects.order_by("id").values()),
        list(Ticket.objects.order_by("id").values()),
        list(TicketEvent.objects.order_by("id").values()),
        list(ReminderNotification.objects.order_by("id").values()),
    )


def test_a_due_reminder_reaches_the_assignee_and_everything_about_it_is_committed(
    cast: Cast,
) -> None:
    ticket = act(cast, SET, open_ticket(cast), minutes=5, note="Call back")
    ticket = act(cast, ASSIGN, ticket, membership_id=cast.agent.pk)
    task = make_due(ticket, ago=timedelta(minutes=3))

    run(task)

    notice = ReminderNotification.objects.get()
    assert (notice.user, notice.ticket, notice.why) == (cast.user("agent"), ticket, "ASSIGNEE")
    assert (notice.reminder_revision, notice.note) == (1, "Call back")
    assert (notice.due_at, notice.read_at, notice.handled_at) == (ticket.due_at, None, None)
    assert 180_000 <= notice.late_ms < 240_000

    version = ticket.version
    ticket.refresh_from_db()
    assert ticket.version == version + 1
    assert (ticket.reminder_revision, ticket.due_at) == (1, notice.due_at)

    event = TicketEvent.objects.get(ticket=ticket, version=ticket.version)
    assert (event.kind, event.actor, event.actor_name) == ("TIMEOUT_REMINDED", None, "system")
    assert event.data["late_ms"] == notice.late_ms
    assert [each["user"] for each in event.data["recipients"]] == [cast.user("agent").pk]

    task.refresh_from_db()
    assert (task.status, task.progress, task.execution_id) == ("COMPLETED", 100, None)
    assert task.result_summary == "Sent to 1 person."
    assert task.evidence["event"] == event.pk
    assert task.evidence["notifications"] == [notice.pk]
    assert (task.evidence["planned"], task.evidence["created"]) == ([notice.user_id], 1)
    assert task.finished_at is not None


def test_a_task_after_its_reminder_was_cancelled_leaves_no_trace(cast: Cast) -> None:
    ticket = act(cast, SET, open_ticket(cast), minutes=1)
    task = make_due(ticket)
    act(cast, SET, ticket, minutes=None)
    before = rows()

    run(task)

    assert rows() == before
    assert fired(ticket) == (0, 0)
    task.refresh_from_db()
    assert task.result_summary == "Skipped: the reminder was cancelled."


def set_again(cast: Cast, ticket: Ticket) -> None:
    act(cast, SET, ticket, minutes=60)


def cancel(cast: Cast, ticket: Ticket) -> None:
    act(cast, SET, ticket, minutes=None)


def resolve(cast: Cast, ticket: Ticket) -> Ticket:
    ticket = act(cast, services.start_ticket, ticket)
    resolved: Ticket = act(cast, services.resolve_ticket, ticket, note="Done.")
    return resolved


def close(cast: Cast, ticket: Ticket) -> None:
    act(cast, services.close_ticket, resolve(cast, ticket))


CHANGES = [
    (cancel, "the reminder was cancelled"),
    (set_again, "the reminder was replaced by a newer one"),
    (resolve, "the ticket was resolved"),
    (close, "the ticket was closed"),
]


@pytest.mark.parametrize(("change", "why"), CHANGES)
def test_an_old_task_says_why_it_was_skipped(
    cast: Cast, change: Callable[[Cast, Ticket], Any], why: str
) -> None:
    ticket, task = due_ticket(cast)
    change(cast, ticket)

    run(task)

    task.refresh_from_db()
    assert task.status == "COMPLETED"
    # Resolving has ended the task before closing could.
    assert task.result_summary == f"Skipped: {why.replace('closed', 'resolved')}."
    assert fired(ticket) == (0, 0)


@pytest.mark.parametrize(("change", "why"), CHANGES)
def test_an_old_task_that_nobody_ended_is_stopped_by_the_second_gate(
    cast: Cast, change: Callable[[Cast, Ticket], Any], why: str
) -> None:
    ticket, task = due_ticket(cast)
    change(cast, ticket)
    # As if the service had not ended it: a bug, a script, a restored backup.
    TaskTransition.objects.filter(task=task).exclude(cause="PLANNED").delete()
    Task.objects.filter(pk=task.pk).update(
        status="WAITING", evidence=None, progress=0, result_summary="", finished_at=None
    )
    version = Ticket.objects.get(pk=ticket.pk).version

    run(task)

    task.refresh_from_db()
    assert (task.status, task.result_summary) == ("COMPLETED", f"Skipped: {why}.")
    assert (task.progress, task.execution_id, task.lease_expires_at) == (100, None, None)
    assert list(task.transitions.values_list("cause", flat=True)) == [
        "PLANNED",
        "CLAIMED",
        "SKIPPED",
    ]
    assert fired(ticket) == (0, 0)
    assert Ticket.objects.get(pk=ticket.pk).version == version


def test_a_reminder_that_was_already_sent_is_not_sent_by_a_second_task(cast: Cast) -> None:
    ticket, task = due_ticket(cast)
    run(task)
    copy = Task.objects.get(pk=task.pk)
    copy.pk = None
    copy.status, copy.evidence, copy.finished_at = "WAITING", None, None
    copy.save(force_insert=True)

    run(copy)

    copy.refresh_from_db()
    assert copy.result_summary == "Skipped: this reminder had already been sent."
    assert fired(ticket) == (1, 1)


def test_a_ticket_that_moved_to_another_team_is_not_reminded_of(cast: Cast) -> None:
    ticket, task = due_ticket(cast)
    Ticket.objects.filter(pk=ticket.pk).update(team=cast.other_team, assignee=None)

    run(task)

    task.refresh_from_db()
    assert task.result_summary == "Skipped: the ticket no longer exists in this team."
    assert fired(ticket) == (0, 0)


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED"])
def test_a_finished_task_is_not_touched(cast: Cast, status: str) -> None:
    _ticket, task = due_ticket(cast)
    Task.objects.filter(pk=task.pk).update(
        status=status, evidence={} if status == "COMPLETED" else None
    )
    before = rows()

    run(task)

    assert rows() == before


def test_a_message_for_another_run_or_team_or_a_missing_task_writes_nothing(cast: Cast) -> None:
    _ticket, task = due_ticket(cast)
    before = rows()

    processor.process(team_id=task.team_id, hints=[(task.pk, task.run + 1)])
    processor.process(team_id=task.team_id, hints=[(task.pk, task.run - 1)])
    processor.process(team_id=task.team_id, hints=[(task.pk + 1000, 1)])
    processor.process(team_id=cast.other_team.pk, hints=[(task.pk, task.run)])
    processor.process(team_id=task.team_id + 1000, hints=[(task.pk, task.run)])

    assert rows() == before


def test_called_early_it_waits_again_and_fires_at_its_time(cast: Cast) -> None:
    ticket = act(cast, ASSIGN, open_ticket(cast), membership_id=cast.agent.pk)
    ticket = act(cast, SET, ticket, minutes=10)
    task = active_task(ticket)

    with pytest.raises(processor.NotDueYet) as early:
        run(task)

    assert early.value.at == ticket.due_at
    assert fired(ticket) == (0, 0)
    task.refresh_from_db()
    assert (task.status, task.run, task.attempts) == ("WAITING", 1, 0)
    assert (task.execution_id, task.available_at) == (None, ticket.due_at)

    make_due(ticket)
    run(task)

    assert fired(ticket) == (1, 1)


def test_the_ticket_says_when_and_not_the_task(cast: Cast) -> None:
    """A task whose own due time is wrong neither fires early nor late."""
    ticket = act(cast, SET, open_ticket(cast), minutes=10)
    task = active_task(ticket)
    long_ago = ticket.due_at - timedelta(days=1)
    Task.objects.filter(pk=task.pk).update(due_at=long_ago, available_at=long_ago)

    with pytest.raises(processor.NotDueYet):
        run(task)

    task.refresh_from_db()
    assert task.available_at == ticket.due_at


def test_called_twice_in_a_row_it_fires_once(cast: Cast) -> None:
    ticket, task = due_ticket(cast)
    version = ticket.version

    run(task)
    run(task)

    assert fired(ticket) == (1, 1)
    ticket.refresh_from_db()
    assert ticket.version == version + 1


def test_set_again_after_it_fired_it_fires_again(cast: Cast) -> None:
    ticket, task = due_ticket(cast)
    run(task)
    ticket.refresh_from_db()
    ticket = act(cast, SET, ticket, minutes=1)

    run(make_due(ticket))

    assert fired(ticket) == (2, 2)


def test_a_customers_reply_leaves_the_reminder_alone(cast: Cast) -> None:
    ticket, task = due_ticket(cast)
    version, revision = ticket.version, ticket.reminder_revision
    ticket = act(cast, services.reply_to_ticket, ticket, by="customer", body="Still burning!")
    assert (ticket.version, ticket.reminder_revision) == (version + 1, revision)

    run(task)

    assert fired(ticket) == (1, 1)


def test_a_backed_off_task_is_not_tried_before_its_time(cast: Cast) -> None:
    ticket, task = due_ticket(cast)
    later = ticket.due_at + timedelta(minutes=10)
    Task.objects.filter(pk=task.pk).update(attempts=1, available_at=later)

    with pytest.raises(processor.NotDueYet) as early:
        run(task)

    assert early.value.at == later
    assert fired(ticket) == (0, 0)
