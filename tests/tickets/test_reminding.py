"""Setting, changing and cancelling a reminder: versions, revisions, due times and tasks at each step."""

from datetime import timedelta
from typing import Any

import pytest

from helpdesk.clock import database_now
from helpdesk.errors import InvalidInput, InvalidTransition, NotAllowed, NotFound, VersionConflict
from reminders.models import Task, TaskTransition
from tests.cast import Cast
from tests.factories import act, open_ticket
from tickets import services
from tickets.models import Ticket, TicketEvent
from tickets.services import schedule_reminder


def tasks_of(ticket: Ticket) -> list[tuple[int, str]]:
    return list(
        Task.objects.filter(ticket=ticket).order_by("id").values_list("reminder_revision", "status")
    )


def everything(ticket: Ticket) -> Any:
    """All that a refused call must leave as it was."""
    return (
        Ticket.objects.filter(pk=ticket.pk).values().get(),
        list(Task.objects.order_by("id").values()),
        list(TaskTransition.objects.order_by("id").values()),
        list(TicketEvent.objects.order_by("id").values()),
    )


def test_version_revision_due_and_tasks_from_creation_to_cancelling(cast: Cast) -> None:
    ticket = open_ticket(cast)
    assert (ticket.version, ticket.reminder_revision) == (0, 0)
    assert ticket.due_at == ticket.created_at + timedelta(hours=24)
    assert tasks_of(ticket) == [(0, "WAITING")]

    before = database_now()
    ticket = act(cast, schedule_reminder, ticket, minutes=1)
    assert (ticket.version, ticket.reminder_revision) == (1, 1)
    assert before < ticket.due_at - timedelta(minutes=1) < database_now()
    assert tasks_of(ticket) == [(0, "COMPLETED"), (1, "WAITING")]
    assert Task.objects.get(ticket=ticket, reminder_revision=1).due_at == ticket.due_at

    ticket = act(cast, schedule_reminder, ticket, minutes=None)
    assert (ticket.version, ticket.reminder_revision, ticket.due_at) == (2, 2, None)
    assert tasks_of(ticket) == [(0, "COMPLETED"), (1, "COMPLETED")]


def test_a_replaced_task_says_that_it_was_skipped_and_why(cast: Cast) -> None:
    ticket = open_ticket(cast)

    act(cast, schedule_reminder, ticket, minutes=1)

    task = Task.objects.get(ticket=ticket, reminder_revision=0)
    assert (task.status, task.progress, task.execution_id) == ("COMPLETED", 100, None)
    assert task.result_summary == "Skipped: the reminder was replaced by a newer one."
    assert task.evidence["reason"] == "REPLACED"
    assert list(task.transitions.values_list("from_status", "to_status", "cause", "actor")) == [
        (None, "WAITING", "PLANNED", None),
        ("WAITING", "COMPLETED", "SKIPPED", cast.agent.user_id),
    ]


def test_cancelled_then_set_again_plans_the_next_revision(cast: Cast) -> None:
    ticket = open_ticket(cast)
    ticket = act(cast, schedule_reminder, ticket, minutes=1)
    ticket = act(cast, schedule_reminder, ticket, minutes=None)

    ticket = act(cast, schedule_reminder, ticket, minutes=1)

    assert (ticket.version, ticket.reminder_revision) == (3, 3)
    assert tasks_of(ticket) == [(0, "COMPLETED"), (1, "COMPLETED"), (3, "WAITING")]


def test_an_old_version_is_a_conflict_that_carries_the_present_one_and_changes_nothing(
    cast: Cast,
) -> None:
    ticket = open_ticket(cast)
    act(cast, schedule_reminder, ticket, minutes=1)
    act(cast, schedule_reminder, ticket, version=1, minutes=None)
    before = everything(ticket)

    with pytest.raises(VersionConflict) as conflict:
        act(cast, schedule_reminder, ticket, version=0, minutes=1)

    assert conflict.value.data["current_version"] == 2
    assert everything(ticket) == before


def test_the_event_says_what_was_set_by_whom_and_the_note_stays_with_the_ticket(
    cast: Cast,
) -> None:
    ticket = act(cast, schedule_reminder, open_ticket(cast), minutes=30, note=" Call back ")

    event = TicketEvent.objects.get(ticket=ticket, kind="REMINDER_SCHEDULED")
    due = ticket.due_at.isoformat(timespec="seconds")
    assert (event.version, event.reminder_revision, event.actor) == (1, 1, cast.user("agent"))
    assert event.reason == f"set to {due}"
    assert event.data == {"minutes": 30, "due_at": due, "note": "Call back"}
    assert (ticket.reminder_note, ticket.reminder_set_by) == ("Call back", cast.user("agent"))

    act(cast, schedule_reminder, ticket, minutes=None)
    assert TicketEvent.objects.get(ticket=ticket, version=2).reason == "cancelled"


def test_the_task_of_a_manual_setting_is_owned_by_the_creator_of_the_ticket(cast: Cast) -> None:
    ticket = act(cast, schedule_reminder, open_ticket(cast), minutes=1)

    assert Task.objects.get(ticket=ticket, reminder_revision=1).owner == cast.user("customer")


@pytest.mark.parametrize("minutes", [1, 10080])
def test_the_limits_themselves_are_valid(cast: Cast, minutes: int) -> None:
    ticket = act(cast, schedule_reminder, open_ticket(cast), minutes=minutes)

    assert ticket.due_at - ticket.updated_at == timedelta(minutes=minutes)


@pytest.mark.parametrize("minutes", [0, -1, 10081, 1.5, 60.0, True, False, "60", "", [], 10**30])
def test_minutes_that_make_no_sense_are_refused_and_change_nothing(
    cast: Cast, minutes: Any
) -> None:
    ticket = open_ticket(cast)
    before = everything(ticket)

    with pytest.raises(InvalidInput) as refusal:
        act(cast, schedule_reminder, ticket, minutes=minutes)

    assert set(refusal.value.data["errors"]) == {"minutes"}
    assert everything(ticket) == before


def test_minutes_cannot_be_left_out(cast: Cast) -> None:
    with pytest.raises(TypeError):
        act(cast, schedule_reminder, open_ticket(cast))


@pytest.mark.parametrize("note", ["x" * 201, "a\x00b", 5])
def test_a_note_that_cannot_be_kept_is_refused(cast: Cast, note: Any) -> None:
    ticket = open_ticket(cast)
    before = everything(ticket)

    with pytest.raises(InvalidInput) as refusal:
        act(cast, schedule_reminder, ticket, minutes=1, note=note)

    assert set(refusal.value.data["errors"]) == {"note"}
    assert everything(ticket) == before


@pytest.mark.parametrize("version", ["0", True, None, 0.0])
def test_a_version_that_is_no_whole_number_is_refused(cast: Cast, version: Any) -> None:
    with pytest.raises(InvalidInput):
        act(cast, schedule_reminder, open_ticket(cast), version=version, minutes=1)


@pytest.mark.parametrize(
    ("who", "error"),
    [("customer", NotAllowed), ("second_customer", NotFound), ("stranger", NotFound)],
)
def test_only_staff_of_the_team_may_set_a_reminder(
    cast: Cast, who: str, error: type[Exception]
) -> None:
    ticket = open_ticket(cast)
    before = everything(ticket)

    with pytest.raises(error):
        act(cast, schedule_reminder, ticket, by=who, minutes=1)

    assert everything(ticket) == before


def test_a_removed_member_may_not_set_a_reminder(cast: Cast) -> None:
    ticket = open_ticket(cast)
    services.remove_member(
        team_id=cast.team.pk, actor_id=cast.user("admin").pk, membership_id=cast.agent.pk
    )
    before = everything(ticket)

    with pytest.raises(NotFound):
        act(cast, schedule_reminder, ticket, minutes=1)

    assert everything(ticket) == before


def test_a_deactivated_account_may_do_nothing(cast: Cast) -> None:
    ticket = open_ticket(cast)
    agent = cast.user("agent")
    agent.is_active = False
    agent.save(update_fields=["is_active"])

    with pytest.raises(NotFound):
        act(cast, schedule_reminder, ticket, minutes=1)


def test_the_ticket_of_another_team_does_not_exist(cast: Cast) -> None:
    ticket = open_ticket(cast)
    before = everything(ticket)

    with pytest.raises(NotFound):
        schedule_reminder(
            team_id=cast.other_team.pk,
            ticket_id=ticket.pk,
            actor_id=cast.user("stranger").pk,
            version=0,
            minutes=1,
        )

    assert everything(ticket) == before


def test_a_superuser_from_outside_acts_as_an_administrator(cast: Cast) -> None:
    stranger = cast.user("stranger")
    stranger.is_superuser = True
    stranger.save(update_fields=["is_superuser"])

    ticket = act(cast, schedule_reminder, open_ticket(cast), by="stranger", minutes=1)

    assert ticket.reminder_revision == 1


def test_a_resolved_or_closed_ticket_has_no_reminder(cast: Cast) -> None:
    ticket = act(cast, services.start_ticket, open_ticket(cast))
    ticket = act(cast, services.resolve_ticket, ticket, note="Put out.")
    for _status in ("RESOLVED", "CLOSED"):
        before = everything(ticket)
        with pytest.raises(InvalidTransition):
            act(cast, schedule_reminder, ticket, minutes=1)
        assert everything(ticket) == before
        if ticket.status == "RESOLVED":
            ticket = act(cast, services.close_ticket, ticket)
