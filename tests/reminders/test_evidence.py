"""Completed is a claim that anybody can check from the rows themselves."""

import pytest

from notifications.models import ReminderNotification
from reminders import evidence, selectors
from reminders.models import Task
from tests.cast import Cast
from tests.factories import act, make_due, open_ticket, run
from tickets import services
from tickets.models import TicketEvent


def fired_task(cast: Cast) -> Task:
    task = make_due(open_ticket(cast))
    run(task)
    task.refresh_from_db()
    return task


def test_the_checksum_can_be_recomputed_from_the_rows(cast: Cast) -> None:
    assert selectors.is_proven(task_id=fired_task(cast).pk)


def test_reading_a_notice_does_not_break_the_proof(cast: Cast) -> None:
    task = fired_task(cast)
    ReminderNotification.objects.update(read_at=task.created_at, handled_at=task.created_at)

    assert selectors.is_proven(task_id=task.pk)


@pytest.mark.parametrize(
    "change",
    [
        lambda: ReminderNotification.objects.update(reminder_revision=7),
        lambda: ReminderNotification.objects.update(why="ASSIGNEE"),
        lambda: ReminderNotification.objects.all().delete(),
        lambda: TicketEvent.objects.filter(kind="TIMEOUT_REMINDED").update(version=99),
        lambda: TicketEvent.objects.filter(kind="TIMEOUT_REMINDED").delete(),
        lambda: Task.objects.update(evidence={"outcome": "skipped", "reason": "CANCELLED"}),
    ],
)
def test_a_row_that_was_changed_or_is_gone_breaks_the_proof(cast: Cast, change: object) -> None:
    task = fired_task(cast)

    change()  # type: ignore[operator]

    assert not selectors.is_proven(task_id=task.pk)


def test_an_unfinished_task_proves_nothing(cast: Cast) -> None:
    assert not selectors.is_proven(task_id=make_due(open_ticket(cast)).pk)


def test_a_skip_says_what_was_planned_and_what_was_found(cast: Cast) -> None:
    ticket = open_ticket(cast)
    ticket = act(cast, services.schedule_reminder, ticket, minutes=None)

    proof = Task.objects.get(ticket=ticket).evidence
    assert proof is not None
    checksum = proof.pop("checksum")
    assert proof == {
        "outcome": "skipped",
        "reason": "CANCELLED",
        "task": Task.objects.get(ticket=ticket).pk,
        "ticket": ticket.pk,
        "planned_revision": 0,
        "ticket_revision": 1,
        "ticket_version": 1,
    }
    assert checksum == evidence._checksum(proof)


def test_the_panel_shows_until_when_for_whom_by_whom_and_then_what_became_of_it(
    cast: Cast,
) -> None:
    ticket = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)
    ticket = act(cast, services.schedule_reminder, ticket, minutes=5, note="Call back")

    panel = selectors.reminder_panel(ticket=ticket, now=ticket.updated_at)
    assert (panel.due_at, panel.seconds_left, panel.note) == (ticket.due_at, 300, "Call back")
    assert panel.set_by == "agent"
    assert [(each.user_id, each.why) for each in panel.recipients] == [
        (cast.user("agent").pk, "ASSIGNEE")
    ]
    assert panel.fired is None

    run(make_due(ticket))
    ticket.refresh_from_db()
    panel = selectors.reminder_panel(ticket=ticket, now=ticket.updated_at)
    assert panel.fired is not None
    assert (panel.fired.names, panel.fired.proven) == (["agent"], True)
    assert panel.recipients == ()
    assert panel.is_overdue


def test_due_exactly_now_is_due(cast: Cast) -> None:
    ticket = open_ticket(cast)
    assert ticket.due_at is not None

    panel = selectors.reminder_panel(ticket=ticket, now=ticket.due_at)

    assert (panel.is_overdue, panel.seconds_left) == (True, 0)
