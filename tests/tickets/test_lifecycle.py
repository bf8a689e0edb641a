"""The steps of a ticket's life, and what each does to its reminder."""

from datetime import timedelta
from typing import Any

import pytest

from helpdesk.errors import InvalidInput, InvalidTransition, NotAllowed, NotFound, VersionConflict
from notifications.models import ReminderNotification
from reminders.models import Task
from tests.cast import Cast
from tests.factories import act, active_task, make_due, open_ticket, run
from tickets import services
from tickets.models import Ticket, TicketEvent
from tickets.states import DEFAULT_DEADLINE, NOTE_REQUIRED, TRANSITIONS, Priority, Status

# How to get a new ticket into each status.
PATHS: dict[Status, list[tuple[Any, dict[str, str]]]] = {
    Status.OPEN: [],
    Status.IN_PROGRESS: [(services.start_ticket, {})],
    Status.RESOLVED: [(services.start_ticket, {}), (services.resolve_ticket, {"note": "Done."})],
    Status.CLOSED: [
        (services.start_ticket, {}),
        (services.resolve_ticket, {"note": "Done."}),
        (services.close_ticket, {}),
    ],
}


def ticket_that_is(cast: Cast, status: Status, **fields: Any) -> Ticket:
    ticket = open_ticket(cast, **fields)
    for service, arguments in PATHS[status]:
        ticket = act(cast, service, ticket, **arguments)
    return ticket


@pytest.mark.parametrize("before", Status)
@pytest.mark.parametrize("after", Status)
def test_only_the_steps_of_the_table_are_possible(
    cast: Cast, before: Status, after: Status
) -> None:
    ticket = ticket_that_is(cast, before)
    version = ticket.version

    if (before, after) in TRANSITIONS:
        act(cast, services.transition_ticket, ticket, to=after, note="Because.")
        expected = (after, version + 1)
    else:
        with pytest.raises(InvalidTransition):
            act(cast, services.transition_ticket, ticket, to=after, note="Because.")
        expected = (before, version)

    ticket = Ticket.objects.get(pk=ticket.pk)
    assert (ticket.status, ticket.version) == expected


def test_closed_is_final() -> None:
    assert not [step for step in TRANSITIONS if step[0] == Status.CLOSED]


@pytest.mark.parametrize("note", ["", "   ", None, "x" * 2001])
def test_resolving_and_reopening_need_a_note(cast: Cast, note: Any) -> None:
    for status, service in (
        (Status.IN_PROGRESS, services.resolve_ticket),
        (Status.RESOLVED, services.reopen_ticket),
    ):
        ticket = ticket_that_is(cast, status)
        with pytest.raises(InvalidInput) as refusal:
            act(cast, service, ticket, note=note)
        assert set(refusal.value.data["errors"]) == {"note"}
        assert Ticket.objects.get(pk=ticket.pk).version == ticket.version


@pytest.mark.parametrize("to", ["", "GONE", None, 7])
def test_a_status_that_does_not_exist_is_invalid_input(cast: Cast, to: Any) -> None:
    with pytest.raises(InvalidInput):
        act(cast, services.transition_ticket, open_ticket(cast), to=to)


@pytest.mark.parametrize(
    ("priority", "hours"), [("URGENT", 1), ("HIGH", 4), ("NORMAL", 24), ("LOW", 48)]
)
def test_the_default_deadline_comes_from_the_priority(
    cast: Cast, priority: str, hours: int
) -> None:
    ticket = open_ticket(cast, priority=priority)

    assert ticket.due_at is not None
    assert ticket.due_at - ticket.created_at == timedelta(hours=hours)
    task = active_task(ticket)
    assert (task.due_at, task.available_at, task.owner) == (
        ticket.due_at,
        ticket.due_at,
        cast.user("customer"),
    )


def test_starting_leaves_the_reminder_alone(cast: Cast) -> None:
    ticket = open_ticket(cast)

    started = act(cast, services.start_ticket, ticket)

    assert (started.due_at, started.reminder_revision) == (ticket.due_at, 0)
    assert active_task(started).status == "WAITING"


def test_resolving_ends_the_reminder(cast: Cast) -> None:
    ticket = ticket_that_is(cast, Status.RESOLVED)

    assert (ticket.due_at, ticket.reminder_revision) == (None, 1)
    assert ticket.resolved_at is not None
    task = Task.objects.get(ticket=ticket)
    assert (task.status, task.result_summary) == (
        "COMPLETED",
        "Skipped: the ticket was resolved.",
    )


def test_closing_moves_the_revision_on(cast: Cast) -> None:
    ticket = ticket_that_is(cast, Status.CLOSED)

    assert (ticket.due_at, ticket.reminder_revision) == (None, 2)
    assert ticket.closed_at is not None


@pytest.mark.parametrize("finish", ["resolve", "close"])
def test_resolving_marks_unread_notices_as_handled_and_leaves_read_ones(
    cast: Cast, finish: str
) -> None:
    ticket = act(cast, services.start_ticket, open_ticket(cast))
    run(make_due(ticket))
    ticket.refresh_from_db()
    ticket = act(cast, services.assign_ticket, ticket, membership_id=cast.agent.pk)
    ticket = act(cast, services.schedule_reminder, ticket, minutes=1)
    run(make_due(ticket))
    ticket.refresh_from_db()
    ReminderNotification.objects.filter(user=cast.user("admin")).update(read_at=ticket.created_at)

    ticket = act(cast, services.resolve_ticket, ticket, note="Done.")
    if finish == "close":
        act(cast, services.close_ticket, ticket)

    assert ReminderNotification.objects.get(user=cast.user("admin")).handled_at is None
    assert ReminderNotification.objects.get(user=cast.user("agent")).handled_at is not None


def test_reopening_starts_a_new_default_deadline_with_a_task_of_the_actor(cast: Cast) -> None:
    ticket = ticket_that_is(cast, Status.RESOLVED, priority=Priority.HIGH)
    version = ticket.version

    ticket = act(cast, services.reopen_ticket, ticket, by="second_agent", note="Burns again.")

    assert (ticket.status, ticket.version, ticket.reminder_revision) == ("OPEN", version + 1, 2)
    assert ticket.resolved_at is None
    assert ticket.due_at == ticket.updated_at + DEFAULT_DEADLINE[Priority.HIGH]
    task = active_task(ticket)
    assert (task.owner, task.reminder_revision) == (cast.user("second_agent"), 2)
    event = TicketEvent.objects.get(ticket=ticket, kind="REOPENED")
    assert (event.reason, event.actor) == ("Burns again.", cast.user("second_agent"))


def test_a_stale_version_cannot_take_a_step(cast: Cast) -> None:
    ticket = open_ticket(cast)
    act(cast, services.add_internal_note, ticket, body="Looking.")

    with pytest.raises(VersionConflict):
        act(cast, services.start_ticket, ticket)


@pytest.mark.parametrize(
    ("who", "error"),
    [("customer", NotAllowed), ("second_customer", NotFound), ("stranger", NotFound)],
)
def test_only_staff_take_steps(cast: Cast, who: str, error: type[Exception]) -> None:
    ticket = open_ticket(cast)

    with pytest.raises(error):
        act(cast, services.start_ticket, ticket, by=who)

    assert Ticket.objects.get(pk=ticket.pk).status == "OPEN"


def test_the_history_of_a_whole_life_has_one_event_for_each_version(cast: Cast) -> None:
    ticket = ticket_that_is(cast, Status.RESOLVED)
    ticket = act(cast, services.reopen_ticket, ticket, note="Again.")
    ticket = act(cast, services.start_ticket, ticket)
    ticket = act(cast, services.resolve_ticket, ticket, note="Now.")
    ticket = act(cast, services.close_ticket, ticket)

    events = TicketEvent.objects.filter(ticket=ticket).order_by("version")
    assert [(event.version, event.kind, event.reminder_revision) for event in events] == [
        (0, "CREATED", 0),
        (1, "STARTED", 0),
        (2, "RESOLVED", 1),
        (3, "REOPENED", 2),
        (4, "STARTED", 2),
        (5, "RESOLVED", 3),
        (6, "CLOSED", 4),
    ]


def test_every_note_that_is_required_belongs_to_a_step() -> None:
    assert set(TRANSITIONS.values()) >= NOTE_REQUIRED
