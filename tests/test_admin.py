"""Django admin: everything can be looked at, what services own cannot be written, actions go through the services."""

from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from knox.models import AuthToken

from notifications.models import ReminderNotification
from reminders.audit import runner
from reminders.models import AuditRun, Finding, Task
from reminders.states import Trigger
from tests.cast import Cast, make_cast
from tests.factories import UserFactory, act, make_due, open_ticket, run
from tests.reminders.audit import anomalies
from tickets import receipts, services
from tickets.models import Comment, Membership, Team, Ticket, TicketEvent, User

pytestmark = [pytest.mark.usefixtures("plain_static"), pytest.mark.django_db(transaction=True)]

OURS = [
    model
    for model in apps.get_models()
    if model._meta.app_label in ("tickets", "reminders", "notifications")
]


@pytest.fixture
def cast() -> Cast:
    return make_cast()


@pytest.fixture
def root(client: Client) -> Client:
    """Signed in as a superuser. Real transactions, since the services insist on the outermost."""
    client.force_login(UserFactory(username="root", is_superuser=True, is_staff=True))
    return client


def address(model: Any, page: str, *arguments: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=arguments)


def do(client: Client, action: str, *rows: Any) -> list[str]:
    """Run an action on these rows; returns what is said afterwards."""
    answer = client.post(
        address(type(rows[0]), "changelist"),
        {"action": action, "_selected_action": [row.pk for row in rows]},
        follow=True,
    )
    assert answer.status_code == 200
    return [str(message) for message in answer.context["messages"]]


def furnish(cast: Cast) -> Ticket:
    """A row of every model: the audit takes offence at the version of the blocker."""
    ticket = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)
    ticket = act(cast, services.reply_to_ticket, ticket, body="Hello")
    ticket = act(cast, services.add_blocker, ticket, number=open_ticket(cast).number)
    run(make_due(ticket))
    ticket.refresh_from_db()
    Ticket.objects.exclude(pk=ticket.pk).update(version=9)
    runner.audit(trigger=Trigger.COMMAND)
    asked = receipts.Request(
        user_id=cast.agent.user_id,
        key=f"key-{ticket.pk}",
        fingerprint="0" * 64,
        answer=lambda comment: {"id": comment.pk},
    )
    act(cast, services.reply_to_ticket, ticket, body="Once", request=asked)
    return ticket


def test_every_model_is_there() -> None:
    assert len(OURS) > 9
    assert [model for model in OURS if model not in admin.site._registry] == []


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_every_list_every_row_and_every_search_opens(root: Client, cast: Cast, model: Any) -> None:
    furnish(cast)
    row = model._default_manager.first()

    assert root.get(address(model, "changelist")).status_code == 200
    assert root.get(address(model, "changelist"), {"q": "7"}).status_code == 200
    assert root.get(address(model, "change", row.pk)).status_code == 200


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_no_list_costs_more_queries_for_more_rows(root: Client, cast: Cast, model: Any) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert root.get(address(model, "changelist")).status_code == 200
        return len(captured)

    furnish(cast)
    queries()  # What is cached for good is cached now.
    few = queries()
    for _ in range(3):
        furnish(cast)

    assert queries() == few


@pytest.mark.parametrize("model", [Team, Membership], ids=lambda model: model.__name__)
def test_a_form_does_not_list_every_account(root: Client, cast: Cast, model: Any) -> None:
    html = root.get(address(model, "add")).content.decode()

    assert "admin-autocomplete" in html
    assert "second_customer" not in html


@pytest.mark.parametrize(
    "model",
    [Ticket, TicketEvent, Comment, Task, ReminderNotification, AuditRun, Finding],
    ids=lambda m: m.__name__,
)
def test_what_services_own_is_read_only(root: Client, cast: Cast, model: Any) -> None:
    furnish(cast)
    row = model.objects.first()
    before = model.objects.filter(pk=row.pk).values().get()

    assert root.get(address(model, "add")).status_code == 403
    assert root.post(address(model, "change", row.pk), {"title": "x"}).status_code == 403
    assert root.post(address(model, "delete", row.pk), {"post": "yes"}).status_code == 403
    assert "delete_selected" not in root.get(address(model, "changelist")).content.decode()
    assert model.objects.filter(pk=row.pk).values().get() == before


def test_a_token_can_be_looked_at_and_taken_away_and_nothing_else(root: Client, cast: Cast) -> None:
    token, _secret = AuthToken.objects.create(cast.user("agent"))

    shown = root.get(address(AuthToken, "change", token.pk)).content.decode()
    assert token.token_key in shown
    assert root.get(address(AuthToken, "add")).status_code == 403
    assert root.post(address(AuthToken, "change", token.pk), {"user": 1}).status_code == 403
    assert root.post(address(AuthToken, "delete", token.pk), {"post": "yes"}).status_code == 302
    assert not AuthToken.objects.exists()


def test_retrying_goes_through_the_service_and_says_what_was_refused(
    root: Client, cast: Cast
) -> None:
    failed, waiting = make_due(open_ticket(cast)), make_due(open_ticket(cast))
    Task.objects.filter(pk=failed.pk).update(status="FAILED")

    said = do(root, "retry", failed, waiting)

    failed.refresh_from_db()
    assert (failed.status, failed.run) == ("WAITING", 2)
    last = failed.transitions.last()
    assert last is not None
    assert last.actor is not None
    assert last.actor.username == "root"
    assert len(said) == 2
    assert "Only a failed task can be retried." in said[0]
    assert said[1] == "1 tasks are back in the queue."


def test_cancelling_a_reminder_goes_through_the_service(root: Client, cast: Cast) -> None:
    ticket = open_ticket(cast)

    do(root, "cancel_reminder", ticket)

    ticket.refresh_from_db()
    assert (ticket.due_at, ticket.reminder_revision, ticket.version) == (None, 1, 1)
    assert Task.objects.get().evidence["reason"] == "CANCELLED"


def test_deactivating_goes_through_the_service_and_can_be_undone(root: Client, cast: Cast) -> None:
    ticket = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)
    agent, last_admin = cast.user("agent"), cast.user("admin")

    said = do(root, "deactivate", agent, last_admin)

    agent.refresh_from_db()
    assert not agent.is_active
    assert not Membership.objects.filter(user=agent).exists()
    ticket.refresh_from_db()
    assert ticket.assignee is None
    assert User.objects.get(pk=last_admin.pk).is_active
    assert "A team keeps at least one administrator." in said[0]

    do(root, "activate", agent)
    agent.refresh_from_db()
    assert agent.is_active


def test_members_are_added_changed_and_removed_through_the_services(
    root: Client, cast: Cast
) -> None:
    newcomer = UserFactory()
    form = {"team": cast.team.pk, "user": newcomer.pk, "role": "AGENT"}
    assert root.post(address(Membership, "add"), form).status_code == 302
    member = Membership.objects.get(user=newcomer)
    again = root.post(address(Membership, "add"), form)
    assert "already exists" in again.content.decode()

    do(root, "make_admin", member)
    assert Membership.objects.get(pk=member.pk).role == "ADMIN"
    do(root, "make_customer", member)
    assert Membership.objects.get(pk=member.pk).role == "CUSTOMER"
    do(root, "make_agent", member)
    do(root, "remove", member)
    assert not Membership.objects.filter(pk=member.pk).exists()


def test_a_new_team_gets_its_first_administrator(root: Client, cast: Cast) -> None:
    boss = UserFactory()
    form = {"name": "Billing", "slug": "billing", "administrator": boss.pk}

    assert root.post(address(Team, "add"), form).status_code == 302

    team = Team.objects.get(slug="billing")
    member = Membership.objects.get(team=team)
    assert (member.user, member.role) == (boss, "ADMIN")


def test_renaming_a_team_leaves_its_ticket_counter_alone(root: Client, cast: Cast) -> None:
    open_ticket(cast)

    answer = root.post(
        address(Team, "change", cast.team.pk), {"name": "Renamed", "slug": "support"}
    )

    assert answer.status_code == 302
    team = Team.objects.get(pk=cast.team.pk)
    assert (team.name, team.last_ticket_number) == ("Renamed", 1)


def test_changing_an_account_does_not_bring_it_back_to_life(root: Client, cast: Cast) -> None:
    """The form was opened before somebody deactivated the account; it must write its own fields only."""
    agent = cast.user("agent")
    page = root.get(address(User, "change", agent.pk))
    fields = {
        name: value
        for name, value in page.context["adminform"].form.initial.items()
        if isinstance(value, str | int) and not isinstance(value, bool)
    }
    services.deactivate_account(user_id=agent.pk, actor_id=UserFactory(is_superuser=True).pk)

    answer = root.post(address(User, "change", agent.pk), {**fields, "first_name": "Anna"})

    assert answer.status_code == 302
    agent.refresh_from_db()
    assert (agent.first_name, agent.is_active) == ("Anna", False)


def test_an_account_can_be_made_and_never_deleted(root: Client) -> None:
    form = {
        "username": "new",
        "usable_password": "true",
        "password1": "correct-horse-7",
        "password2": "correct-horse-7",
    }

    assert root.post(address(User, "add"), form).status_code == 302

    user = User.objects.get(username="new")
    assert user.is_active
    assert root.post(address(User, "delete", user.pk), {"post": "yes"}).status_code == 403


def find(cast: Cast) -> tuple[Finding, Finding]:
    """A ticket that was changed behind its back, and a lease that ran out of a task that starts tomorrow."""
    anomalies.changed_behind_its_back(version=9)(cast)
    anomalies.update_task(anomalies.worker_vanished(cast), started_at=anomalies.tomorrow())
    runner.audit(trigger=Trigger.COMMAND, codes=["unexplained", "expired_lease"])
    in_doubt, changed = Finding.objects.order_by("code")
    return changed, in_doubt


def test_findings_are_acknowledged_and_repaired_through_the_services(
    root: Client, cast: Cast
) -> None:
    changed, in_doubt = find(cast)

    said = do(root, "acknowledge", changed, in_doubt)
    assert said == ["2 findings were acknowledged."]
    changed.refresh_from_db()
    assert changed.handled_by is not None
    assert (changed.handling, changed.handled_by.username) == ("ACKNOWLEDGED", "root")

    said = do(root, "repair", changed, in_doubt)
    assert len(said) == 2
    assert any("There is no repair for findings of this kind." in each for each in said)
    assert "1 findings were repaired." in said
    in_doubt.refresh_from_db()
    assert (in_doubt.action, in_doubt.closed_at is not None) == ("REQUEUED", True)


def test_the_evidence_of_a_finding_is_laid_out_and_harmless(root: Client, cast: Cast) -> None:
    changed, _ = find(cast)
    Finding.objects.update(evidence={"ticket.title": "</pre><script>alert(1)</script> 工单"})

    html = root.get(address(Finding, "change", changed.pk)).content.decode()

    assert "<pre>{\n  &quot;ticket.title&quot;: &quot;&lt;/pre&gt;&lt;script&gt;" in html
    assert "工单" in html
    assert "<script>alert(1)" not in html


def test_the_audit_is_run_by_a_button(root: Client, cast: Cast) -> None:
    assert "Run the audit now" in root.get(address(AuditRun, "changelist")).content.decode()
    anomalies.changed_behind_its_back(version=9)(cast)
    button = reverse("admin:reminders_audit_now")

    assert root.get(button).headers["Location"] == address(AuditRun, "changelist")
    assert not AuditRun.objects.exists()

    answer = root.post(button, follow=True)
    assert [str(message) for message in answer.context["messages"]] == [
        "The audit found 1 inconsistency, of which 1 is left for a person."
    ]
    made = AuditRun.objects.get()
    assert made.actor is not None
    assert (made.trigger, made.team, made.actor.username) == ("PERSON", None, "root")


def test_the_button_says_that_another_audit_runs(
    root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(**_arguments: Any) -> None:
        raise runner.AuditBusy

    monkeypatch.setattr("reminders.audit.runner.audit", busy)

    answer = root.post(reverse("admin:reminders_audit_now"), follow=True)

    assert "Another audit is running." in str(next(iter(answer.context["messages"])))


def test_the_button_is_for_superusers(client: Client, cast: Cast) -> None:
    clerk = UserFactory(is_staff=True)
    clerk.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    client.force_login(clerk)

    assert "audit now" not in client.get(address(AuditRun, "changelist")).content.decode()
    assert client.post(reverse("admin:reminders_audit_now")).status_code == 403
    assert not AuditRun.objects.exists()


def test_without_being_superuser_there_are_no_actions(client: Client, cast: Cast) -> None:
    clerk = UserFactory(is_staff=True)
    clerk.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    client.force_login(clerk)
    task = make_due(open_ticket(cast))
    Task.objects.filter(pk=task.pk).update(status="FAILED")

    client.post(address(Task, "changelist"), {"action": "retry", "_selected_action": [task.pk]})

    assert Task.objects.get(pk=task.pk).status == "FAILED"
