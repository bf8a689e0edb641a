"""Who may what: every endpoint for everybody, from one table."""

import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.urls import URLPattern, URLResolver, get_resolver

from helpdesk.api.schema import openapi
from helpdesk.clock import database_now
from reminders.models import AuditRun, Finding, Task
from tests.api.conftest import V1, Api
from tests.cast import Cast
from tests.factories import UserFactory, act, make_due, open_ticket, run
from tests.reminders.audit.anomalies import worker_vanished
from tickets import services
from tickets.models import User

# In the order of the columns below.
ACTORS = ("anonymous", "customer", "agent", "admin", "stranger", "removed", "superuser")


@dataclass(frozen=True, slots=True)
class Row:
    """A method of an endpoint and the status for each of ACTORS. Places in braces are filled by the fixture."""

    method: str
    path: str
    statuses: tuple[int, ...]
    body: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


TICKET = "teams/{team}/tickets/{number}/"
SEEN = {"If_Match": '"{version}"'}
#                                    anon cust agent admin other gone super
EVERYBODY = (200,) * 7
SIGNED_IN = (401, 200, 200, 200, 200, 200, 200)
MEMBERS = (401, 200, 200, 200, 404, 404, 200)
STAFF = (401, 403, 200, 200, 404, 404, 200)
ADMINS = (401, 403, 403, 200, 404, 404, 200)


def creating(of: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(201 if status == 200 else status for status in of)


def emptying(of: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(204 if status == 200 else status for status in of)


TABLE = [
    Row("POST", "auth/token/", (201,) * 7, {"username": "door", "password": "opens"}),
    Row("DELETE", "auth/token/", emptying(SIGNED_IN)),
    Row("GET", "me/", SIGNED_IN),
    Row("GET", "teams/{team}/members/", STAFF),
    Row(
        "POST", "teams/{team}/members/", creating(ADMINS), {"username": "newcomer", "role": "AGENT"}
    ),
    Row("PATCH", "teams/{team}/members/{member_id}/", ADMINS, {"role": "CUSTOMER"}),
    Row("DELETE", "teams/{team}/members/{member_id}/", emptying(ADMINS)),
    Row("GET", "teams/{team}/tickets/", MEMBERS),
    Row("POST", "teams/{team}/tickets/", creating(MEMBERS), {"title": "T", "description": "D"}),
    Row("GET", TICKET, MEMBERS),
    Row("PATCH", TICKET, STAFF, {"title": "New"}, SEEN),
    Row("POST", TICKET + "schedule/", STAFF, {"minutes": 5}, SEEN),
    Row("POST", TICKET + "transition/", STAFF, {"to": "IN_PROGRESS"}, SEEN),
    Row("POST", TICKET + "assign/", STAFF, {"membership": None}, SEEN),
    Row("GET", TICKET + "comments/", MEMBERS),
    Row("POST", TICKET + "comments/", creating(MEMBERS), {"body": "Hello"}),
    Row("GET", TICKET + "events/", MEMBERS),
    Row("GET", TICKET + "links/", STAFF),
    Row("POST", TICKET + "links/", creating(STAFF), {"blocker": "{other}"}, SEEN),
    Row("DELETE", TICKET + "links/{blocker}/", STAFF, None, SEEN),
    Row("GET", "teams/{team}/tasks/", STAFF),
    Row("GET", "teams/{team}/tasks/{task_id}/", STAFF),
    Row("POST", "teams/{team}/tasks/{task_id}/retry/", STAFF),
    Row("GET", "teams/{team}/findings/", ADMINS),
    Row("POST", "teams/{team}/findings/{finding_id}/acknowledge/", ADMINS, {}),
    Row("POST", "teams/{team}/findings/{finding_id}/resolve/", ADMINS, {"note": "Fine."}),
    Row("POST", "teams/{team}/findings/{finding_id}/repair/", ADMINS),
    Row("POST", "teams/{team}/audit/", ADMINS, {}),
    Row("GET", "notifications/", SIGNED_IN),
    # The notice is the agent's; everybody else's does not exist.
    Row("POST", "notifications/{notice_id}/read/", (401, 404, 200, 404, 404, 404, 404)),
    Row("POST", "notifications/read-all/", SIGNED_IN),
    Row("GET", "/api/schema/", EVERYBODY),
    Row("GET", "/api/docs/", EVERYBODY),
]


@dataclass(frozen=True, slots=True)
class World:
    people: dict[str, User | None]
    places: dict[str, Any]


@pytest.fixture
def world(cast: Cast, audited_task: int) -> World:
    """Something of everything: a ticket with a blocker, a notice, a failed task, a finding that can be repaired."""
    removed = cast.user("second_agent")
    services.remove_member(
        team_id=cast.team.pk, actor_id=cast.user("admin").pk, membership_id=cast.second_agent.pk
    )
    root = UserFactory(username="root", is_superuser=True)
    UserFactory(username="newcomer")
    door = UserFactory(username="door")
    door.set_password("opens")
    door.save(update_fields=["password"])

    reminded = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)
    run(make_due(reminded))
    blocker, other = open_ticket(cast), open_ticket(cast)
    ticket = act(cast, services.add_blocker, open_ticket(cast), number=blocker.number)
    failed = make_due(open_ticket(cast))
    failed_id = fail(failed.pk)
    (notice,) = Api(cast.user("agent")).get("notifications/").json()["results"]
    return World(
        people={
            "anonymous": None,
            "customer": cast.user("customer"),
            "agent": cast.user("agent"),
            "admin": cast.user("admin"),
            "stranger": cast.user("stranger"),
            "removed": removed,
            "superuser": root,
        },
        places={
            "team": "support",
            "number": ticket.number,
            "version": ticket.version,
            "other": other.number,
            "blocker": blocker.number,
            "member_id": cast.second_customer.pk,
            "task_id": failed_id,
            "finding_id": audited_task,
            "notice_id": notice["id"],
        },
    )


def fail(task_id: int) -> int:
    Task.objects.filter(pk=task_id).update(status="FAILED", last_error="It broke.")
    return task_id


@pytest.fixture
def audited_task(cast: Cast) -> int:
    """An open finding with a repair, that is in doubt, so that it waits for a person."""
    pk = worker_vanished(cast)
    Task.objects.filter(pk=pk).update(started_at=database_now() + timedelta(days=1))
    audit = AuditRun.objects.create(trigger="COMMAND", codes=[], started_at=database_now())
    now = database_now()
    finding = Finding.objects.create(
        code="expired_lease",
        severity="WARNING",
        verdict="AMBIGUOUS",
        subject_kind="TASK",
        subject_id=pk,
        team=cast.team,
        evidence={},
        doubts=["started_in_future"],
        since=now,
        first_seen=now,
        last_seen=now,
        run=audit,
    )
    return finding.pk


def filled(value: Any, places: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {name: filled(each, places) for name, each in value.items()}
    if value == "{other}":
        return places["other"]
    return value.format(**places) if isinstance(value, str) else value


@pytest.mark.parametrize("actor", ACTORS)
@pytest.mark.parametrize("row", TABLE, ids=str)
def test_everybody_may_what_the_table_says(
    world: World, row: Row, actor: str, plain_static: None, django_capture_on_commit_callbacks: Any
) -> None:
    answer = Api(world.people[actor])(
        row.method,
        filled(row.path, world.places),
        filled(row.body, world.places),
        **filled(row.headers, world.places),
    )
    expected = row.statuses[ACTORS.index(actor)]
    assert answer.status_code == expected, answer.content
    if expected >= 400:
        assert answer["Content-Type"] == "application/problem+json"


def test_refused_by_role_before_the_body_is_read(world: World) -> None:
    """Otherwise its errors would tell of what is not for them."""
    for row in TABLE:
        if row.body and row.statuses in (STAFF, ADMINS, creating(STAFF), creating(ADMINS)):
            answer = Api(world.people["customer"])(
                row.method, filled(row.path, world.places), {"nonsense": 1}
            )
            assert answer.status_code == 403, str(row)


def endpoints(resolver: URLResolver, prefix: str = "") -> set[tuple[str, str]]:
    """(method, path) of everything below /api/."""
    found: set[tuple[str, str]] = set()
    for each in resolver.url_patterns:
        path = prefix + str(each.pattern)
        if isinstance(each, URLResolver):
            found |= endpoints(each, path)
        elif isinstance(each, URLPattern) and path.startswith("api/") and path != "api/":
            view = each.callback.view_class  # type: ignore[attr-defined]
            for method in ("get", "post", "put", "patch", "delete"):
                if hasattr(view, method):
                    found.add((method.upper(), path))
    return found


def plain(path: str) -> str:
    """An address with its places in braces, as the table has them."""
    path = re.sub(r"<\w+:(\w+)>", r"{\1}", path)
    return path.removeprefix("api/v1/") if path.startswith("api/v1/") else f"/{path}"


def test_the_table_has_every_endpoint() -> None:
    assert {(row.method, row.path) for row in TABLE} == {
        (method, plain(path)) for method, path in endpoints(get_resolver())
    }


def test_the_document_has_every_endpoint() -> None:
    described = {
        (method.upper(), path.removeprefix(V1))
        for path, methods in openapi()["paths"].items()
        for method in methods
    }
    assert described == {(row.method, row.path) for row in TABLE if row.path[0] != "/"}
    assert settings.SPECTACULAR_SETTINGS["OAS_VERSION"] == openapi()["openapi"]


def test_another_teams_rows_do_not_exist_here(cast: Cast, world: World) -> None:
    """The stranger administers a team of their own; ids of this one mean nothing there."""
    stranger = Api(world.people["stranger"])
    for row in TABLE:
        if "{team}" not in row.path or row.path.count("{") < 2:
            continue
        places = {**world.places, "team": "elsewhere"}
        answer = stranger(
            row.method,
            filled(row.path, places),
            filled(row.body, places),
            **filled(row.headers, places),
        )
        assert answer.status_code == 404, f"{row}: {answer.content!r}"
