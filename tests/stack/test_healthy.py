"""A healthy system has no findings, whatever people do and however much of it at once. A false alarm is a defect."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from django.db import connections

from helpdesk.clock import database_now
from helpdesk.errors import DomainError
from reminders.audit import runner
from reminders.audit.runner import AuditBusy, Report
from reminders.models import AuditRun, Finding, Task
from reminders.states import ACTIVE, Trigger
from tests.cast import Cast, make_cast
from tests.factories import MembershipFactory, UserFactory, age
from tests.stack.conftest import TIMEOUT, Stack, wait_until
from tickets import services
from tickets.locks import locked_team
from tickets.models import Membership, Team, Ticket, TicketEvent, TicketLink
from tickets.states import Priority, Role

OPERATIONS = int(os.environ.get("SOAK_OPERATIONS", "1000"))
SEED = int(os.environ.get("SOAK_SEED", "2026"))
THREADS = 3


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


def let_it_come_due(ticket: Ticket) -> None:
    """Let so much time go by for this ticket alone that its reminder is due.

    Every date of it moves, in one transaction under the team's lock, so that nothing disagrees. Left out
    is what has to do with others, or is sealed: tickets with links, with something sent, with messages
    that may still be on their way.
    """
    with locked_team(ticket.team_id):
        ticket.refresh_from_db()
        if (
            ticket.due_at is None
            or TicketLink.objects.filter(ticket=ticket).exists()
            or TicketLink.objects.filter(blocker=ticket).exists()
            or Task.objects.filter(ticket=ticket).exclude(status="WAITING").exists()
        ):
            return
        age(ticket, ticket.due_at - database_now() + timedelta(milliseconds=100))


class Person:
    """Somebody who does one thing after the other, as it comes."""

    def __init__(self, seed: int, teams: list[Team]) -> None:
        self.random = Random(seed)
        self.teams = teams
        self.done = 0

    def work(self, times: int) -> None:
        try:
            for _time in range(times):
                self._something()
        finally:
            connections.close_all()

    def _something(self) -> None:
        team = self.random.choice(self.teams)
        try:
            ticket = self._ticket(team)
            if ticket is None or self.random.random() < 0.12:
                self._open(team)
            else:
                self.random.choice([*[self._on_ticket] * 8, *[let_it_come_due] * 3, self._members])(
                    ticket
                )
        except DomainError:
            return  # Somebody was faster, or it is not possible now: both are daily life.
        self.done += 1

    def _open(self, team: Team) -> None:
        services.create_ticket(
            team_id=team.pk,
            actor_id=self.random.choice(list(Membership.objects.filter(team=team))).user_id,
            title="Something",
            description="Is broken.",
            priority=self.random.choice(Priority.values),
        )

    def _ticket(self, team: Team) -> Ticket | None:
        count = Ticket.objects.filter(team=team).count()
        # Mostly the latest, so that people get in each other's way.
        back = min(int(self.random.expovariate(0.15)), count - 1)
        return Ticket.objects.filter(team=team).order_by("-id")[back] if count else None

    def _on_ticket(self, ticket: Ticket) -> None:
        staff = Membership.objects.filter(team=ticket.team_id).exclude(role=Role.CUSTOMER)
        common = {
            "team_id": ticket.team_id,
            "ticket_id": ticket.pk,
            "actor_id": self.random.choice(list(staff)).user_id,
        }
        versioned = {**common, "version": ticket.version}
        other = self._ticket(ticket.team)
        assert other is not None
        link = TicketLink.objects.filter(ticket=ticket).first()
        calls: list[Callable[[], Any]] = [
            lambda: services.reply_to_ticket(**common, body="Hello?"),
            lambda: services.add_internal_note(**common, body="Hm."),
            lambda: services.assign_ticket(
                **versioned, membership_id=self.random.choice([*(m.pk for m in staff), None])
            ),
            lambda: services.edit_ticket(**versioned, title=f"Something {self.random.random()}"),
            lambda: services.start_ticket(**versioned),
            lambda: services.resolve_ticket(**versioned, note="Done."),
            lambda: services.close_ticket(**versioned),
            lambda: services.reopen_ticket(**versioned, note="Not done."),
            lambda: services.schedule_reminder(**versioned, minutes=self.random.randint(1, 90)),
            lambda: services.schedule_reminder(**versioned, minutes=None),
            lambda: services.add_blocker(**versioned, number=other.number),
            lambda: services.remove_blocker(**versioned, link_id=link.pk if link else 0),
        ]
        self.random.choice(calls)()

    def _members(self, ticket: Ticket) -> None:
        members = Membership.objects.filter(team=ticket.team_id).order_by("id")
        member = self.random.choice(list(members))
        by = {"team_id": ticket.team_id, "actor_id": members.filter(role=Role.ADMIN)[0].user_id}
        match self.random.randrange(3):
            case 0:
                services.change_role(
                    **by, membership_id=member.pk, role=self.random.choice(Role.values)
                )
            case 1:
                services.remove_member(**by, membership_id=member.pk)
            case _:
                services.add_member(**by, user_id=UserFactory().pk, role=Role.AGENT)


def audit_everything() -> Report | None:
    """A full look; None while the worker's own is under way."""
    try:
        return runner.audit(trigger=Trigger.COMMAND, full=True)
    except AuditBusy:
        return None


def is_settled() -> bool:
    """Nothing that is due is left to do."""
    return not Task.objects.filter(status__in=ACTIVE, due_at__lte=database_now()).exists()


def beats_audit_comes_round() -> None:
    runs = AuditRun.objects.filter(trigger="BEAT", finished_at__isnull=False)
    before = runs.count()
    wait_until(lambda: runs.count() > before, "beat's audit came round")


@pytest.mark.timeout(0 if OPERATIONS > 1000 else 180)
def test_a_thousand_random_operations_with_a_worker_running_give_no_findings(
    stack: Stack, cast: Cast
) -> None:
    for team in (cast.team, cast.other_team):
        for role in (Role.ADMIN, Role.AGENT, Role.AGENT, Role.CUSTOMER):
            MembershipFactory(team=team, role=role)
    stack.worker()
    stack.beat()
    people = [Person(SEED + each, [cast.team, cast.other_team]) for each in range(THREADS)]
    looked = 0
    with ThreadPoolExecutor(THREADS) as pool:
        working = [pool.submit(person.work, OPERATIONS // THREADS + 1) for person in people]
        while not all(each.done() for each in working):
            looked += audit_everything() is not None
            beats_audit_comes_round()  # One at a time: ours must not keep it out.
        for each in working:
            each.result()

    wait_until(is_settled, "everything due was sent or skipped", within=TIMEOUT)
    beats_audit_comes_round()
    last = wait_until(audit_everything, "the last look")

    said = f"SOAK_SEED={SEED}"
    assert list(Finding.objects.values("code", "evidence", "doubts", "action")) == [], said
    assert (last.errors, last.rows > OPERATIONS / 10) == ({}, True), said
    assert not AuditRun.objects.exclude(errors={}).exists(), said
    # It was not quiet because nothing happened.
    assert sum(person.done for person in people) > OPERATIONS * 0.4, said
    assert TicketEvent.objects.filter(kind="TIMEOUT_REMINDED").count() > OPERATIONS / 40, said
    assert TicketLink.objects.exists(), said
    assert looked > 3, said
