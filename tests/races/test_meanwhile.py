"""What people change in the very moment a reminder fires: whoever has the team lock first is right."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, transaction

from helpdesk.errors import Busy
from notifications import services as notices
from notifications.models import ReminderNotification
from reminders import processor
from reminders.models import Task
from tests.cast import Cast, make_cast
from tests.factories import UserFactory, act, make_due, open_ticket, run
from tests.races.conftest import TIMEOUT, Pause, Threads
from tickets import history, services
from tickets.models import Ticket, TicketEvent
from tickets.services import assignment, lifecycle, members, reminding
from tickets.states import Role

Change = Callable[[Cast, Ticket], Any]


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


def due(cast: Cast) -> tuple[Ticket, Task]:
    ticket = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)
    ticket = act(cast, services.start_ticket, ticket)
    return ticket, make_due(ticket)


def reminded() -> set[str]:
    return set(ReminderNotification.objects.values_list("user__username", flat=True))


def demote(cast: Cast, ticket: Ticket) -> None:
    services.change_role(
        team_id=cast.team.pk,
        actor_id=cast.user("admin").pk,
        membership_id=cast.agent.pk,
        role=Role.CUSTOMER,
    )


def remove(cast: Cast, ticket: Ticket) -> None:
    services.remove_member(
        team_id=cast.team.pk, actor_id=cast.user("admin").pk, membership_id=cast.agent.pk
    )


def deactivate(cast: Cast, ticket: Ticket) -> None:
    root = UserFactory(is_superuser=True)
    services.deactivate_account(user_id=cast.user("agent").pk, actor_id=root.pk)


def reassign(cast: Cast, ticket: Ticket) -> None:
    act(cast, services.assign_ticket, ticket, membership_id=cast.second_agent.pk)


def cancel(cast: Cast, ticket: Ticket) -> None:
    act(cast, services.schedule_reminder, ticket, minutes=None)


def set_again(cast: Cast, ticket: Ticket) -> None:
    act(cast, services.schedule_reminder, ticket, minutes=5)


def resolve(cast: Cast, ticket: Ticket) -> None:
    act(cast, services.resolve_ticket, ticket, note="Done.")


# The change, the module whose call of history writes its last row, and who is told afterwards.
FIRST: list[tuple[Change, Any, str, set[str]]] = [
    (demote, members, "record_changes", {"admin"}),
    (remove, members, "record_changes", {"admin"}),
    (deactivate, members, "record_changes", {"admin"}),
    (reassign, assignment, "record_change", {"second_agent"}),
    (cancel, reminding, "record_change", set()),
    (set_again, reminding, "record_change", set()),
    (resolve, lifecycle, "record_change", set()),
]


@pytest.mark.parametrize(("change", "module", "name", "told"), FIRST)
def test_a_change_that_has_the_lock_first_decides(
    cast: Cast,
    threads: Threads,
    monkeypatch: pytest.MonkeyPatch,
    change: Change,
    module: Any,
    name: str,
    told: set[str],
) -> None:
    ticket, task = due(cast)
    pause = Pause(monkeypatch, module, name, after=True)
    person = threads.start(lambda: change(cast, ticket))
    pause.wait()
    worker = threads.start(lambda: run(task))
    threads.wait_until_blocked()
    pause.go_on()

    person.result(TIMEOUT)
    worker.result(TIMEOUT)
    assert reminded() == told
    task.refresh_from_db()
    assert task.status == "COMPLETED"
    assert task.evidence["outcome"] == ("fired" if told else "skipped")


@pytest.mark.parametrize("change", [case[0] for case in FIRST if case[0] is not deactivate])
def test_a_change_that_comes_second_finds_the_reminder_sent(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    """People's edits then see the version the reminder made; changes of membership carry none."""
    ticket, task = due(cast)
    pause = Pause(monkeypatch, notices, "deliver", after=True)
    worker = threads.start(lambda: run(task))
    pause.wait()
    person = threads.start(lambda: change(cast, ticket))
    threads.wait_until_blocked()
    pause.go_on()

    worker.result(TIMEOUT)
    conflict = person.exception(TIMEOUT)
    assert reminded() == {"agent"}
    assert task.transitions.filter(cause="FIRED").count() == 1
    if change in (demote, remove):
        assert conflict is None
    else:
        assert getattr(conflict, "code", None) == "version_conflict"


def test_without_the_team_lock_the_demoted_agent_would_be_told(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the processor reads while the demotion is under way, the guard removed."""

    @contextmanager
    def unlocked(team_id: int) -> Iterator[None]:
        with transaction.atomic():
            yield

    monkeypatch.setattr(processor, "locked_team", unlocked)
    monkeypatch.setattr(history, "require_team_lock", lambda team_id: None)
    ticket, task = due(cast)
    pause = Pause(monkeypatch, members, "_unassign")
    person = threads.start(lambda: demote(cast, ticket))
    pause.wait()

    run(task)

    assert reminded() == {"agent"}
    pause.go_on()
    person.result(TIMEOUT)


def test_of_two_people_who_take_one_ticket_the_second_is_told(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = open_ticket(cast)
    pause = Pause(monkeypatch, assignment, "record_change", after=True)
    first = threads.start(lambda: take(cast, ticket, "agent"))
    pause.wait()
    second = threads.start(lambda: take(cast, ticket, "second_agent"))
    threads.wait_until_blocked()
    pause.go_on()

    first.result(TIMEOUT)
    assert getattr(second.exception(TIMEOUT), "code", None) == "version_conflict"
    ticket.refresh_from_db()
    assert (ticket.assignee, ticket.version) == (cast.agent, 1)


def test_without_the_version_check_the_second_would_silently_win(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assignment, "require_version", lambda ticket, version: None)
    ticket = open_ticket(cast)
    for who in ("agent", "second_agent"):
        threads.start(lambda who=who: take(cast, ticket, who)).result(TIMEOUT)

    ticket.refresh_from_db()
    assert ticket.assignee == cast.second_agent


def take(cast: Cast, ticket: Ticket, who: str) -> None:
    act(
        cast,
        services.assign_ticket,
        ticket,
        by=who,
        version=0,
        membership_id=getattr(cast, who).pk,
    )


def test_two_admins_who_demote_each_other_leave_one(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = services.add_member(
        team_id=cast.team.pk,
        actor_id=cast.user("admin").pk,
        user_id=UserFactory().pk,
        role=Role.ADMIN,
    )

    def demote_other(actor_id: int, membership_id: int) -> None:
        services.change_role(
            team_id=cast.team.pk, actor_id=actor_id, membership_id=membership_id, role=Role.AGENT
        )

    pause = Pause(monkeypatch, members, "_require_another_admin", after=True)
    one = threads.start(lambda: demote_other(cast.user("admin").pk, second.pk))
    pause.wait()
    other = threads.start(lambda: demote_other(second.user_id, cast.admin.pk))
    threads.wait_until_blocked()
    pause.go_on()

    one.result(TIMEOUT)
    assert getattr(other.exception(TIMEOUT), "code", None) == "not_allowed"
    cast.admin.refresh_from_db()
    assert cast.admin.role == Role.ADMIN


def test_tickets_opened_at_once_get_numbers_without_gaps_or_repeats(
    cast: Cast, threads: Threads
) -> None:
    for call in [threads.start(lambda: open_ticket(cast)) for _ in range(10)]:
        call.result(TIMEOUT)

    numbers = Ticket.objects.order_by("number").values_list("number", flat=True)
    assert list(numbers) == list(range(1, 11))
    assert TicketEvent.objects.filter(kind="CREATED").count() == 10


def test_a_team_that_stays_locked_is_busy_and_the_caller_is_not_held_for_ever(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = open_ticket(cast)
    pause = Pause(monkeypatch, assignment, "record_change")
    holder = threads.start(lambda: take(cast, ticket, "agent"))
    pause.wait()
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")
    try:
        with pytest.raises(Busy):
            act(cast, services.reply_to_ticket, ticket, body="Hello?")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")
        pause.go_on()

    holder.result(TIMEOUT)
    assert Ticket.objects.get(pk=ticket.pk).version == 1
