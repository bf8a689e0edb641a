"""Rows for tests. Tickets and their tasks are made by the services, so that their history is true."""

from datetime import timedelta
from typing import Any

import factory
from django.db.models import DateTimeField, F

from helpdesk.clock import database_now
from notifications.models import ReminderNotification
from reminders import processor
from reminders.models import Task, TaskTransition
from tests.people import People
from tickets import services
from tickets.models import Comment, Membership, MembershipChange, Team, Ticket, TicketEvent, User
from tickets.states import Role


class UserFactory(factory.django.DjangoModelFactory[User]):
    class Meta:
        model = User

    username = factory.Sequence(lambda n: f"person{n}")


class TeamFactory(factory.django.DjangoModelFactory[Team]):
    class Meta:
        model = Team

    name = factory.Sequence(lambda n: f"Team {n}")
    slug = factory.Sequence(lambda n: f"team-{n}")


class MembershipFactory(factory.django.DjangoModelFactory[Membership]):
    class Meta:
        model = Membership
        skip_postgeneration_save = True

    team = factory.SubFactory(TeamFactory)
    user = factory.SubFactory(UserFactory)
    role = Role.AGENT

    @factory.post_generation
    def history(self: Membership, create: bool, extracted: Any, **kwargs: Any) -> None:
        MembershipChange.objects.create(
            team_id=self.team_id,
            user_id=self.user_id,
            role=self.role,
            # Long enough ago for tickets that a test makes old.
            at=database_now() - timedelta(days=400),
        )


def open_ticket(cast: People, *, by: str = "customer", **fields: Any) -> Ticket:
    """A new ticket of the cast's team, with its default deadline."""
    return services.create_ticket(
        team_id=cast.team.pk,
        actor_id=cast.user(by).pk,
        **{"title": "Printer on fire", "description": "It burns.", **fields},
    )


def act(cast: People, service: Any, ticket: Ticket, *, by: str = "agent", **arguments: Any) -> Any:
    """Call a ticket service as one of the cast, on the version the caller has seen."""
    if service not in (services.reply_to_ticket, services.add_internal_note):
        arguments.setdefault("version", ticket.version)
    return service(
        team_id=cast.team.pk, ticket_id=ticket.pk, actor_id=cast.user(by).pk, **arguments
    )


def make_due(ticket: Ticket, *, ago: timedelta = timedelta(seconds=1)) -> Task:
    """Move the ticket's present reminder into the past, as if that time had gone by. Returns its task."""
    due_at = database_now() - ago
    Ticket.objects.filter(pk=ticket.pk).update(due_at=due_at)
    ticket.refresh_from_db()
    task = active_task(ticket)
    Task.objects.filter(pk=task.pk).update(due_at=due_at, available_at=due_at)
    task.refresh_from_db()
    return task


def age(ticket: Ticket, by: timedelta) -> Ticket:
    """Move all that has happened to the ticket into the past, as if that much time had gone by, in every row."""
    for table, of in (
        (Ticket, "id"),
        (TicketEvent, "ticket_id"),
        (Comment, "ticket_id"),
        (Task, "ticket_id"),
        (TaskTransition, "task__ticket_id"),
        (ReminderNotification, "ticket_id"),
    ):
        dates = [each.name for each in table._meta.fields if isinstance(each, DateTimeField)]
        table.objects.filter(**{of: ticket.pk}).update(**{name: F(name) - by for name in dates})
    ticket.refresh_from_db()
    return ticket


def active_task(ticket: Ticket) -> Task:
    """The unfinished task for the ticket's present reminder revision."""
    return Task.objects.get(
        ticket=ticket,
        reminder_revision=F("ticket__reminder_revision"),
        status__in=["WAITING", "RUNNING"],
    )


def run(*tasks: Task) -> None:
    """Process these tasks of one team as one message would."""
    processor.process(team_id=tasks[0].team_id, hints=[(task.pk, task.run) for task in tasks])
