"""Links made while somebody else links or resolves: whoever has the team lock first is right."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction

from helpdesk.errors import InvalidInput, InvalidTransition
from tests.cast import Cast, make_cast
from tests.factories import act, open_ticket
from tests.races.conftest import TIMEOUT, Pause, Threads
from tickets import history, locks, services
from tickets.models import Team, Ticket, TicketEvent, TicketLink
from tickets.services import lifecycle, linking


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


def link(cast: Cast, ticket: Ticket, blocker: Ticket, **arguments: Any) -> Ticket:
    return act(cast, services.add_blocker, ticket, number=blocker.number, **arguments)


def resolve(cast: Cast, ticket: Ticket) -> Ticket:
    return act(cast, services.resolve_ticket, ticket, by="second_agent", note="Done.")


def links() -> list[tuple[int, int]]:
    return list(TicketLink.objects.values_list("ticket", "blocker"))


def state(ticket: Ticket) -> tuple[str, int]:
    fresh = Ticket.objects.get(pk=ticket.pk)
    assert TicketEvent.objects.filter(ticket=ticket).count() == fresh.version + 1
    return fresh.status, fresh.version


def test_of_two_people_who_let_two_tickets_wait_for_each_other_one_succeeds(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each ticket has its own version, so the versions alone would let both through."""
    first, second = open_ticket(cast), open_ticket(cast)
    pause = Pause(monkeypatch, linking, "_require_no_circle", after=True)
    one = threads.start(lambda: link(cast, first, second))
    pause.wait()
    other = threads.start(lambda: link(cast, second, first, by="second_agent"))
    threads.wait_until_blocked()
    pause.go_on()

    one.result(TIMEOUT)
    refusal = other.exception(TIMEOUT)
    assert isinstance(refusal, InvalidInput)
    assert set(refusal.data["errors"]) == {"number"}
    assert links() == [(first.pk, second.pk)]
    assert (state(first), state(second)) == (("OPEN", 1), ("OPEN", 0))


def test_without_the_team_lock_both_would_wait_for_ever(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the second looks for a circle while the first is about to write, the guard removed."""

    @contextmanager
    def unlocked(team_id: int) -> Iterator[Team]:
        with transaction.atomic():
            yield Team.objects.get(pk=team_id)

    monkeypatch.setattr(linking, "locked_team", unlocked)
    for module in (locks, history):
        monkeypatch.setattr(module, "require_team_lock", lambda team_id: None)
    first, second = open_ticket(cast), open_ticket(cast)
    pause = Pause(monkeypatch, linking, "_require_no_circle", after=True)
    one = threads.start(lambda: link(cast, first, second))
    pause.wait()

    link(cast, second, first)

    pause.go_on()
    one.result(TIMEOUT)
    assert sorted(links()) == [(first.pk, second.pk), (second.pk, first.pk)]


def test_a_ticket_that_is_given_a_blocker_first_is_not_resolved(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever resolves is told that the ticket changed; having looked again, what it waits for."""
    blocker = open_ticket(cast)
    ticket = act(cast, services.start_ticket, open_ticket(cast))
    pause = Pause(monkeypatch, linking, "record_change", after=True)
    linker = threads.start(lambda: link(cast, ticket, blocker))
    pause.wait()
    resolver = threads.start(lambda: resolve(cast, ticket))
    threads.wait_until_blocked()
    pause.go_on()

    fresh = linker.result(TIMEOUT)
    assert getattr(resolver.exception(TIMEOUT), "code", None) == "version_conflict"
    with pytest.raises(InvalidTransition, match="waits for #1"):
        resolve(cast, fresh)
    assert links() == [(ticket.pk, blocker.pk)]
    assert state(ticket) == ("IN_PROGRESS", 2)


def test_a_ticket_that_is_resolved_first_gets_no_blocker(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocker = open_ticket(cast)
    ticket = act(cast, services.start_ticket, open_ticket(cast))
    pause = Pause(monkeypatch, lifecycle, "record_change", after=True)
    resolver = threads.start(lambda: resolve(cast, ticket))
    pause.wait()
    linker = threads.start(lambda: link(cast, ticket, blocker))
    threads.wait_until_blocked()
    pause.go_on()

    resolver.result(TIMEOUT)
    assert isinstance(linker.exception(TIMEOUT), InvalidTransition)
    assert links() == []
    assert state(ticket) == ("RESOLVED", 2)


def test_a_blocker_that_is_resolved_first_is_nothing_to_wait_for(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version of the ticket that waits knows nothing of it: the lock alone decides."""
    blocker = act(cast, services.start_ticket, open_ticket(cast))
    ticket = open_ticket(cast)
    pause = Pause(monkeypatch, lifecycle, "record_change", after=True)
    resolver = threads.start(lambda: resolve(cast, blocker))
    pause.wait()
    linker = threads.start(lambda: link(cast, ticket, blocker))
    threads.wait_until_blocked()
    pause.go_on()

    resolver.result(TIMEOUT)
    refusal = linker.exception(TIMEOUT)
    assert isinstance(refusal, InvalidInput)
    assert set(refusal.data["errors"]) == {"number"}
    assert links() == []
    assert state(ticket) == ("OPEN", 0)


def test_a_blocker_that_is_resolved_second_was_waited_for(
    cast: Cast, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocker = act(cast, services.start_ticket, open_ticket(cast))
    ticket = open_ticket(cast)
    pause = Pause(monkeypatch, linking, "record_change", after=True)
    linker = threads.start(lambda: link(cast, ticket, blocker))
    pause.wait()
    resolver = threads.start(lambda: resolve(cast, blocker))
    threads.wait_until_blocked()
    pause.go_on()

    linker.result(TIMEOUT)
    resolver.result(TIMEOUT)
    assert links() == [(ticket.pk, blocker.pk)]
    assert (state(ticket), state(blocker)) == (("OPEN", 1), ("RESOLVED", 2))
