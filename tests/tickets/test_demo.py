"""Demo data: true histories, every state, and never by accident where it would be a hole."""

from collections import Counter
from io import StringIO
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db.models import Count, F, Max

from reminders.models import Task
from tests.factories import TeamFactory, UserFactory
from tickets import demo
from tickets.models import Membership, Team, Ticket, TicketEvent, User
from tickets.states import ACTIVE, EventKind, Priority, Role, Status

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fast_passwords(settings: LazySettings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def run_demo(**options: Any) -> str:
    output = StringIO()
    call_command("demo", stdout=output, **options)
    return output.getvalue()


@pytest.fixture
def created(settings: LazySettings) -> str:
    settings.DEBUG = True
    return run_demo()


def test_it_creates_people_who_can_sign_in_and_says_who_they_are(created: str) -> None:
    for person in demo.PEOPLE:
        user = User.objects.get(username=person.username)
        user.full_clean()
        assert user.check_password(demo.PASSWORD)
        assert person.username in created
        assert user.display_name in created
    assert list(User.objects.filter(is_superuser=True).values_list("username", flat=True)) == [
        "admin"
    ]


def test_the_teams_have_the_roles_that_somebody_wants_to_try(created: str) -> None:
    def roles(slug: str) -> dict[str, str]:
        return dict(
            Membership.objects.filter(team__slug=slug).values_list("user__username", "role")
        )

    assert roles("demo") == {
        "admin": Role.ADMIN,
        "agent1": Role.AGENT,
        "agent2": Role.AGENT,
        "customer1": Role.CUSTOMER,
        "customer2": Role.CUSTOMER,
    }
    assert roles("billing") == {
        "admin": Role.ADMIN,
        "agent2": Role.AGENT,
        "customer1": Role.CUSTOMER,
    }


def test_every_status_priority_and_kind_of_event_a_person_can_cause_is_shown(created: str) -> None:
    assert set(Ticket.objects.values_list("status", flat=True)) == set(Status.values)
    assert set(Ticket.objects.values_list("priority", flat=True)) == set(Priority.values)
    # Only time can send a reminder.
    assert set(TicketEvent.objects.values_list("kind", flat=True)) == set(EventKind.values) - {
        EventKind.TIMEOUT_REMINDED
    }


def test_every_history_is_complete_and_every_intent_has_its_task(created: str) -> None:
    assert Ticket.objects.count() == len(demo.STORIES)
    incomplete = Ticket.objects.annotate(
        events_stored=Count("events"), last=Max("events__version")
    ).exclude(version=F("last"), events_stored=F("last") + 1)
    assert not incomplete.exists()

    wanted = Counter(
        Ticket.objects.filter(due_at__isnull=False).values_list("pk", "reminder_revision", "due_at")
    )
    planned = Counter(
        Task.objects.filter(status="WAITING").values_list("ticket", "reminder_revision", "due_at")
    )
    assert planned == wanted
    assert not Ticket.objects.filter(due_at__isnull=False).exclude(status__in=ACTIVE).exists()


def test_each_of_the_staff_sees_a_reminder_fire_within_minutes(created: str) -> None:
    soon = [
        story
        for story in demo.STORIES
        for step in story.steps
        if isinstance(minutes := step.arguments.get("minutes"), int) and minutes <= 3
    ]
    reached = {
        ticket.assignee.user.username if ticket.assignee else "admin"
        for ticket in Ticket.objects.filter(title__in=[story.title for story in soon])
    }
    assert reached == {"admin", "agent1", "agent2"}


def test_a_second_run_changes_nothing_and_says_so(created: str) -> None:
    before = (User.objects.count(), Team.objects.count(), TicketEvent.objects.count())

    assert "already" in run_demo()

    assert (User.objects.count(), Team.objects.count(), TicketEvent.objects.count()) == before


def test_a_database_that_has_a_team_is_left_alone() -> None:
    TeamFactory()

    assert "already" in run_demo(force=True)

    assert not User.objects.exists()


def test_an_account_of_the_same_name_keeps_its_password() -> None:
    own = UserFactory(username="admin")

    assert "admin" in run_demo(force=True)

    own.refresh_from_db()
    assert not own.check_password(demo.PASSWORD)
    assert not own.is_superuser
    assert not Team.objects.exists()


def test_it_refuses_where_debug_is_off(settings: LazySettings) -> None:
    settings.DEBUG = False

    with pytest.raises(CommandError, match="--force"):
        run_demo()

    assert not User.objects.exists()
    run_demo(force=True)
    assert User.objects.exists()
