"""How many queries an answer costs does not depend on how many rows there are."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helpdesk.clock import database_now
from reminders.models import AuditRun, Finding
from tests.api.conftest import Api, As
from tests.cast import Cast
from tests.factories import MembershipFactory, act, make_due, open_ticket, run
from tickets import services
from tickets.models import Ticket
from tickets.states import Role


def more_of_everything(cast: Cast, times: int) -> None:
    for _time in range(times):
        member = MembershipFactory(team=cast.team, role=Role.AGENT)
        act(cast, services.assign_ticket, open_ticket(cast), membership_id=member.pk)
        act(cast, services.reply_to_ticket, first(), body="Hello", by="customer")
        act(cast, services.add_blocker, first(), number=open_ticket(cast).number)
        due = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.admin.pk)
        run(make_due(due))
        now = database_now()
        Finding.objects.create(
            code="unexplained",
            severity="ERROR",
            verdict="AMBIGUOUS",
            subject_kind="TICKET",
            subject_id=due.pk,
            team=cast.team,
            evidence={},
            doubts=[],
            since=now,
            first_seen=now,
            last_seen=now,
            run=AuditRun.objects.create(trigger="COMMAND", codes=[], started_at=now),
        )


def first() -> Ticket:
    return Ticket.objects.select_related("assignee__user").order_by("number")[0]


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("me/", 4),
        ("teams/support/members/", 4),
        ("teams/support/tickets/", 5),
        ("teams/support/tickets/?order=-updated_at", 7),
        ("teams/support/tickets/?search=printer&status=OPEN&assignee=me", 5),
        ("teams/support/tickets/1/", 14),
        ("teams/support/tickets/1/comments/", 5),
        ("teams/support/tickets/1/events/", 5),
        ("teams/support/tickets/1/links/", 6),
        ("teams/support/tasks/", 4),
        ("teams/support/tasks/1/", 5),
        ("teams/support/findings/", 5),
        ("notifications/", 3),
    ],
)
def test_a_list_costs_as_much_for_many_as_for_few(cast: Cast, by: As, path: str, most: int) -> None:
    def cost() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            answer = by("admin").get(path)
        assert answer.status_code in (200, 404), answer.json()
        return len(queries)

    open_ticket(cast)
    more_of_everything(cast, 1)
    by("admin").get(path)  # Signs in.
    few = cost()
    more_of_everything(cast, 5)
    assert cost() == few <= most


def test_a_task_with_a_long_history(cast: Cast, agent: Api) -> None:
    open_ticket(cast)
    (task,) = agent.get("teams/support/tasks/").json()["results"]
    with CaptureQueriesContext(connection) as queries:
        assert agent.get(f"teams/support/tasks/{task['id']}/").status_code == 200
    assert len(queries) <= 6
