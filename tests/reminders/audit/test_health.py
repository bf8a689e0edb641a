"""Queue health: its figures, its page, and what people do there."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone, translation

from helpdesk.clock import database_now
from reminders import outbox
from reminders.audit import repair, selectors, wording
from reminders.audit.registry import CHECKS
from reminders.audit.selectors import RunState
from reminders.models import AuditRun, Finding, Task
from tests.broker import use_broker
from tests.cast import Cast
from tests.factories import UserFactory, active_task, age, make_due, open_ticket, run
from tests.reminders.audit import anomalies
from tests.reminders.audit.anomalies import ANOMALIES, LONG, Anomaly, fired, tomorrow, update_task
from tests.reminders.audit.conftest import Audit
from tickets.locks import audit_lane
from tickets.models import Membership, Ticket, User

pytestmark = pytest.mark.usefixtures("plain_static")

HOSTILE = "</pre><script>alert('evidence')</script>"


@pytest.fixture
def root(db: None) -> User:
    return UserFactory(username="root", is_superuser=True)


@pytest.fixture
def changed(cast: Cast, audit: Audit) -> Finding:
    """A ticket that was changed behind its back: always ambiguous, no repair."""
    return behind_its_back(cast, audit)


def behind_its_back(cast: Cast, audit: Audit) -> Finding:
    anomalies.changed_behind_its_back(version=9)(cast)
    audit(codes=["unexplained"])
    return Finding.objects.latest("id")


@pytest.fixture
def in_doubt(cast: Cast, audit: Audit) -> Finding:
    """A lease that ran out of a task that starts tomorrow: there is a repair, and a doubt."""
    update_task(anomalies.worker_vanished(cast), started_at=tomorrow())
    audit(codes=["expired_lease"])
    return Finding.objects.latest("id")


@pytest.fixture
def of_no_team(cast: Cast, audit: Audit) -> Finding:
    anomalies.nobody_takes_messages(cast)
    audit(codes=["stale_messages"])
    return Finding.objects.latest("id")


@contextmanager
def queries(count: int) -> Iterator[None]:
    with CaptureQueriesContext(connection) as captured:
        yield
    assert len(captured) == count, [query["sql"] for query in captured]


class Page:
    """The page of a team, or of all, in the browser of somebody."""

    def __init__(self, client: Client, user: User, team: str | None = "support") -> None:
        client.force_login(user)
        self.client, self.slug = client, {"slug": team} if team else {}

    def address(self, name: str = "health", **arguments: Any) -> str:
        return reverse(name, kwargs={**self.slug, **arguments})

    def get(self, query: str = "", **headers: str) -> str:
        answer = self.client.get(self.address() + query, headers=headers)
        assert answer.status_code == 200
        return answer.content.decode()

    def check_now(self) -> str:
        answer = self.client.post(self.address("check-now"), follow=True)
        assert answer.status_code == 200
        return answer.content.decode()

    def do(self, deed: str, row: Finding, **sent: str) -> tuple[int, str]:
        """Press a button; returns the status and the page that is shown in the end."""
        address = self.address("handle-finding", finding_id=row.pk, deed=deed)
        answer = self.client.post(address, sent, follow=True)
        return answer.status_code, answer.content.decode()


@pytest.fixture
def page(client: Client, cast: Cast) -> Page:
    return Page(client, cast.user("admin"))


# --- Figures ----------------------------------------------------------------------------------------
def test_figures_count_what_is_in_the_queue_and_what_lately_left_it(cast: Cast) -> None:
    open_ticket(cast)
    overdue = make_due(open_ticket(cast), ago=timedelta(minutes=7))
    running = make_due(open_ticket(cast), ago=timedelta(minutes=3))
    update_task(running.pk, status="RUNNING", execution_id=uuid4(), lease_expires_at=database_now())
    update_task(make_due(open_ticket(cast)).pk, status="FAILED", finished_at=database_now())
    run(make_due(open_ticket(cast)))
    long_ago = fired(cast)
    update_task(long_ago.pk, finished_at=database_now() - timedelta(days=2))

    with queries(1):
        seen = selectors.figures(team_id=cast.team.pk)

    assert (seen.waiting, seen.running, seen.failed, seen.completed) == (2, 1, 1, 1)
    assert (seen.due, seen.oldest_due, seen.oldest_task) == (2, overdue.due_at, overdue.pk)
    assert seen.backlog is not None
    assert timedelta(minutes=7) <= seen.backlog < timedelta(minutes=8)
    assert (seen.found, seen.undecided) == (0, 0)
    of_all = selectors.figures(team_id=None)
    assert replace(of_all, now=seen.now) == seen
    nothing = selectors.figures(team_id=cast.other_team.pk)
    assert (nothing.waiting, nothing.failed, nothing.completed, nothing.due) == (0, 0, 0, 0)
    assert (nothing.backlog, nothing.sent, nothing.lateness) == (None, 0, [])


def test_lateness_is_of_reminders_that_were_sent_in_the_last_day(cast: Cast) -> None:
    for late_ms in (100, 200, 300, 400, 5_000):
        task = fired(cast)
        update_task(task.pk, evidence={**task.evidence, "late_ms": late_ms})
    # Neither what was skipped, nor what is no number, nor one that no float can hold.
    for odd in ({"outcome": "skipped", "late_ms": 9e9}, {"outcome": "fired", "late_ms": "x"}, []):
        update_task(fired(cast).pk, evidence=odd)
    old = fired(cast)
    update_task(old.pk, finished_at=database_now() - timedelta(hours=25))

    seen = selectors.figures(team_id=cast.team.pk)

    assert (seen.sent, seen.completed) == (5, 8)
    assert (seen.p50_ms, seen.p95_ms, seen.p99_ms) == pytest.approx((300, 4_080, 4_816))
    assert seen.lateness == [
        ("50 % within", "300 ms"),
        ("95 % within", "4.1 s"),
        ("99 % within", "4.8 s"),
    ]


def test_a_lateness_beyond_all_numbers_is_no_error(cast: Cast) -> None:
    task = fired(cast)
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE reminders_task SET evidence = '{"outcome": "fired", "late_ms": 1e400}'
               WHERE id = %s""",
            [task.pk],
        )

    assert selectors.figures(team_id=None).p50_ms == 1e12


@pytest.mark.parametrize(
    ("values", "looked"),
    [
        ({}, True),
        ({"team": "team"}, True),
        ({"team": "other_team"}, False),
        ({"codes": ["unproven"]}, False),
        ({"trigger": "BOUNDARY"}, False),
        ({"finished_at": None}, False),
    ],
)
def test_only_a_whole_look_at_the_team_counts_as_one(
    cast: Cast, values: dict[str, Any], looked: bool
) -> None:
    now = database_now()
    if "team" in values:
        values = {"team": getattr(cast, values["team"])}
    AuditRun.objects.create(**{"trigger": "BEAT", "started_at": now, "finished_at": now} | values)

    seen = selectors.figures(team_id=cast.team.pk)

    assert (seen.last_looked == now) is looked
    assert seen.is_unwatched is not looked


def test_the_audit_is_missed_when_it_skips_its_turns(cast: Cast, audit: Audit) -> None:
    audit()
    assert not selectors.figures(team_id=None).is_unwatched
    AuditRun.objects.update(finished_at=database_now() - timedelta(minutes=4))
    assert selectors.figures(team_id=None).is_unwatched


def test_the_brokers_stale_messages_are_those_of_the_team(cast: Cast) -> None:
    tasks = [active_task(age(open_ticket(cast), LONG)) for _ in range(2)]
    outbox.dispatch_due()
    run(tasks[0])

    with queries(1):
        mine = selectors.broker_state(team_id=cast.team.pk)
    assert (mine.answers, mine.depth["reminders"], mine.read, mine.stale) == (True, 1, 2, 1)
    with queries(0):
        theirs = selectors.broker_state(team_id=cast.other_team.pk)
    assert (theirs.depth["reminders"], theirs.read, theirs.stale) == (1, 0, 0)


def test_a_broker_with_what_nobody_can_read_is_no_error(own_broker: Any) -> None:
    own_broker.lpush("reminders", "what is this")

    assert not selectors.broker_state(team_id=None).answers


# --- Runs -------------------------------------------------------------------------------------------
def test_runs_say_what_became_of_them_newest_first(cast: Cast) -> None:
    now = database_now()
    ended = {"trigger": "BEAT", "started_at": now, "finished_at": now, "duration_ms": 20}
    for values in (
        {"started_at": now, "trigger": "BEAT"},
        ended,
        {**ended, "found": 2, "repaired": 2, "actor": cast.user("admin"), "codes": ["unproven"]},
        {**ended, "found": 2, "failed": 1},
        {**ended, "errors": {"gone_check": "DataError: x"}, "duration_ms": 40},
        {"started_at": now, "trigger": "COMMAND"},
    ):
        AuditRun.objects.create(**values)

    with queries(1):
        rows = selectors.audit_runs(team_id=None, now=now)

    assert [row.state for row in rows] == [
        RunState.UNDER_WAY,
        RunState.FAILED,
        RunState.FAILED,
        RunState.FOUND,
        RunState.CLEAN,
        RunState.INTERRUPTED,
    ]
    assert rows[1].errors == {"gone_check": "DataError: x"}
    assert (rows[3].actor_name, rows[3].only) == ("admin", ["Completed without proof"])
    later = selectors.audit_runs(team_id=None, now=now + timedelta(hours=1))
    assert later[0].state == RunState.INTERRUPTED


def test_a_teams_runs_are_its_own_and_those_over_all(cast: Cast) -> None:
    now = database_now()
    ids = [
        AuditRun.objects.create(trigger="BEAT", started_at=now, finished_at=now, team=team).pk
        for team in (None, cast.team, cast.other_team)
    ]

    assert [row.id for row in selectors.audit_runs(team_id=cast.team.pk, now=now)] == ids[1::-1]
    assert [row.id for row in selectors.audit_runs(team_id=None, now=now)] == ids[::-1]


def test_the_chart_has_a_bar_for_each_run_the_longest_is_the_highest(cast: Cast) -> None:
    now = database_now()
    for duration in (*[10] * 45, 1_000, None):
        AuditRun.objects.create(
            trigger="BEAT",
            started_at=now,
            finished_at=now if duration else None,
            duration_ms=duration,
        )

    chart = selectors.chart(selectors.audit_runs(team_id=None, now=now))

    assert len(chart.bars) == selectors.RUNS
    heights = [bar.height for bar in chart.bars]
    assert heights[-2] == max(heights) == chart.TALLEST
    assert min(heights) == heights[0] > 0
    assert chart.longest == "1.0 s"
    assert all(0 <= bar.x <= chart.width - chart.BAR for bar in chart.bars)
    assert chart.states == [RunState.CLEAN, RunState.UNDER_WAY]
    assert selectors.chart([]).bars == []


# --- Findings ---------------------------------------------------------------------------------------
def test_findings_cost_two_queries_however_many_and_name_their_subjects(
    cast: Cast, audit: Audit
) -> None:
    task = anomalies.marked_complete(cast)
    ticket = anomalies.changed_behind_its_back(version=9)(cast)
    notice = anomalies.told_without_a_trace(cast)
    audit()
    for _ in range(3):
        behind_its_back(cast, audit)

    with queries(2):
        rows = selectors.open_findings(team_id=cast.team.pk)

    assert [row.id for row in rows] == sorted((row.id for row in rows), reverse=True)
    about = {(row.subject_kind, row.subject_id): row.ticket_number for row in rows}
    assert len(rows) == 6
    assert about["TASK", task] == Ticket.objects.get(pk=Task.objects.get(pk=task).ticket_id).number
    assert about["TICKET", ticket] == Ticket.objects.get(pk=ticket).number
    assert about["NOTICE", notice] is not None
    assert rows[-1].title == str(CHECKS[rows[-1].code].title)
    assert rows[-1].meaning == str(CHECKS[rows[-1].code].meaning)
    assert selectors.open_findings(team_id=cast.other_team.pk) == []
    page = selectors.open_findings(team_id=None, before=rows[1].id, limit=2)
    assert [row.id for row in page] == [rows[2].id, rows[3].id]


def test_a_ticket_of_another_team_is_not_named(cast: Cast, changed: Finding) -> None:
    Ticket.objects.update(team=cast.other_team, assignee=None)

    (row,) = selectors.open_findings(team_id=cast.team.pk)

    assert (row.ticket_number, row.ticket_title) == (None, "")


def test_what_has_gone_is_shown_with_what_was_done_the_latest_first(
    cast: Cast, audit: Audit, changed: Finding
) -> None:
    anomalies.worker_vanished(cast)
    audit()
    Ticket.objects.filter(pk=changed.subject_id).update(version=2)
    audit()

    with queries(2):
        rows = selectors.closed_findings(team_id=cast.team.pk)

    assert [(row.code, row.action_label) for row in rows] == [
        ("unexplained", ""),
        ("expired_lease", "Put back in the queue"),
    ]
    assert selectors.open_findings(team_id=cast.team.pk) == []


def test_evidence_stands_by_column_in_the_readers_zone_with_what_was_read(changed: Finding) -> None:
    Finding.objects.update(
        evidence={
            "ticket.status": "OPEN",
            "proof.problem": "no evidence",
            "event.status": "RESOLVED",
            "event.at": "2026-03-01T10:00:00.123456+00:00",
            "event.ids": [1, None, "2026-03-01T10:00:00+00:00"],
            "task.evidence": {"outcome": "fired"},
            "task.late": 1.5,
        }
    )
    with timezone.override("Asia/Shanghai"):
        (row,) = selectors.open_findings(team_id=None)
        lines = {line.source: line.values for line in row.evidence}

    assert list(lines) == [
        "proof.problem",
        "event.at",
        "task.evidence",
        "event.ids",
        "task.late",
        "event.status",
        "ticket.status",
    ]
    (at,) = lines["event.at"]
    assert at.text == "2026-03-01T10:00:00.123456+00:00"
    assert at.moment == datetime(2026, 3, 1, 10, 0, 0, 123456, tzinfo=UTC)
    assert [value.is_nothing for value in lines["event.ids"]] == [False, True, False]
    assert lines["task.evidence"][0].is_block
    assert lines["task.late"][0].text == "1.5"


@pytest.mark.parametrize(
    "text",
    ["9999-12-31T23:59:59+00:00", "2026-02-31T00:00:00+00:00", "2026-01-01", "0001-01-01T00:00:00"],
)
def test_a_time_that_cannot_be_shown_is_shown_as_it_is(changed: Finding, text: str) -> None:
    Finding.objects.update(evidence={"a.b": text})
    with timezone.override("Asia/Shanghai"):
        (row,) = selectors.open_findings(team_id=None)

    assert (row.evidence[0].values[0].text, row.evidence[0].values[0].moment) == (text, None)


def test_evidence_of_any_shape_is_shown(changed: Finding) -> None:
    for odd in ([], "text", 7, [{"a": [1]}]):
        Finding.objects.update(evidence=odd)
        (row,) = selectors.open_findings(team_id=None)
        assert row.evidence[0].source == ""


def test_a_check_that_is_no_longer_registered_still_shows(page: Page, changed: Finding) -> None:
    Finding.objects.update(code="of_yesterday", doubts=["a_doubt_of_then"])

    html = page.get()

    for text in ("of_yesterday", "a_doubt_of_then", "This check no longer exists"):
        assert text in html
    assert "/repair/" not in html


def test_every_doubt_and_problem_has_its_words() -> None:
    named = {
        name
        for check in CHECKS.values()
        for name in re.findall(r"THEN '([a-z_]+)' END", check.query)
    }
    assert named
    assert named == set(wording.DOUBTS)
    problems = {
        each.evidence["proof.problem"] for each in ANOMALIES if "proof.problem" in each.evidence
    }
    assert problems == set(wording.PROBLEMS)


def test_doubts_in_words_leave_what_nobody_knows() -> None:
    assert wording.doubts_in_words(["never_started", "who_knows", 7]) == [
        "The task runs, but has no start.",
        "who_knows",
        "7",
    ]


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [(0, "0 ms"), (999, "999 ms"), (1_000, "1.0 s"), (59_900, "59.9 s"), (61_000, "1 min 1 s")],
)
def test_short_durations_are_said_exactly(milliseconds: float, words: str) -> None:
    assert wording.brief(milliseconds) == words


# --- The badge --------------------------------------------------------------------------------------
def test_the_badge_counts_what_waits_in_the_teams_of_the_staff(
    cast: Cast, audit: Audit, root: User, in_doubt: Finding, of_no_team: Finding
) -> None:
    behind_its_back(cast, audit)
    gone, resolved, certain = (behind_its_back(cast, audit) for _ in range(3))
    Finding.objects.filter(pk=gone.pk).update(closed_at=database_now())
    Finding.objects.filter(pk=certain.pk).update(verdict="CERTAIN")
    Finding.objects.filter(pk=resolved.pk).update(handling="RESOLVED", handled_at=database_now())
    Finding.objects.filter(pk=in_doubt.pk).update(
        handling="ACKNOWLEDGED", handled_at=database_now()
    )

    counts = {}
    for user in (cast.user("admin"), cast.user("agent"), cast.user("customer"), root):
        with queries(1):
            counts[user.username] = selectors.open_ambiguous(user)
    assert counts == {"admin": 2, "agent": 2, "customer": 0, "root": 3}
    assert selectors.open_ambiguous(cast.user("stranger")) == 0


def test_the_badge_of_an_agent_says_who_decides_and_leads_nowhere(
    client: Client, cast: Cast, changed: Finding
) -> None:
    client.force_login(cast.user("agent"))

    html = client.get(reverse("tickets", args=["support"])).content.decode()

    assert "an administrator has to decide" in html
    assert "/health/" not in html


def test_the_badge_of_an_administrator_is_beside_the_link(
    client: Client, cast: Cast, changed: Finding
) -> None:
    client.force_login(cast.user("admin"))

    html = client.get(reverse("tickets", args=["support"])).content.decode()

    assert reverse("health", args=["support"]) in html
    assert "wait for a decision" in html
    assert f'"{reverse("health")}"' not in html


def test_a_superuser_finds_the_page_of_all_teams(
    client: Client, cast: Cast, root: User, changed: Finding
) -> None:
    client.force_login(root)

    for address in (reverse("tickets", args=["support"]), reverse("notifications")):
        html = client.get(address).content.decode()
        assert f'"{reverse("health")}"' in html
        assert "wait for a decision" in html


def test_customers_and_strangers_are_asked_nothing(
    client: Client, cast: Cast, changed: Finding
) -> None:
    def about_findings(address: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            client.get(address)
        return sum("reminders_finding" in query["sql"] for query in captured)

    assert about_findings(reverse("login")) == 0
    for who, count in (("customer", 0), ("agent", 1), ("admin", 1)):
        client.force_login(cast.user(who))
        assert about_findings(reverse("tickets", args=["support"])) == count


# --- Who may ----------------------------------------------------------------------------------------
PLACES = [
    ("get", "health", {}),
    ("post", "check-now", {}),
    ("post", "handle-finding", {"deed": "acknowledge"}),
    ("post", "handle-finding", {"deed": "resolve"}),
    ("post", "handle-finding", {"deed": "repair"}),
]


def everything() -> list[Any]:
    return [list(Finding.objects.values()), list(Task.objects.values()), AuditRun.objects.count()]


@pytest.mark.parametrize(
    ("who", "expected"), [("agent", 403), ("customer", 403), ("stranger", 404)]
)
@pytest.mark.parametrize(("method", "name", "arguments"), PLACES)
def test_a_teams_health_is_for_its_administrators(
    client: Client,
    cast: Cast,
    in_doubt: Finding,
    who: str,
    expected: int,
    method: str,
    name: str,
    arguments: dict[str, str],
) -> None:
    page, before = Page(client, cast.user(who)), everything()
    row = {"finding_id": in_doubt.pk} if arguments else {}

    answer = getattr(client, method)(page.address(name, **row, **arguments), {"note": "Mine."})

    assert answer.status_code == expected
    assert everything() == before


@pytest.mark.parametrize("who", ["admin", "agent", "customer"])
@pytest.mark.parametrize(("method", "name", "arguments"), PLACES)
def test_the_health_of_all_teams_is_for_superusers(
    client: Client,
    cast: Cast,
    in_doubt: Finding,
    who: str,
    method: str,
    name: str,
    arguments: dict[str, str],
) -> None:
    page, before = Page(client, cast.user(who), team=None), everything()
    row = {"finding_id": in_doubt.pk} if arguments else {}

    answer = getattr(client, method)(page.address(name, **row, **arguments), {"note": "Mine."})

    assert answer.status_code == 404
    assert everything() == before


def test_who_is_not_signed_in_is_sent_to_do_so(client: Client, cast: Cast) -> None:
    for address in (reverse("health"), reverse("health", args=["support"])):
        assert client.get(address).headers["Location"].startswith(reverse("login"))


@pytest.mark.parametrize("team", ["support", None])
def test_a_button_opened_by_address_leads_to_the_page_and_does_nothing(
    client: Client, root: User, in_doubt: Finding, team: str | None
) -> None:
    """That is where somebody lands who had to sign in again after pressing the button."""
    page, before = Page(client, root, team), everything()

    for name, arguments in (
        ("check-now", {}),
        ("handle-finding", {"finding_id": in_doubt.pk, "deed": "repair"}),
    ):
        answer = client.get(page.address(name, **arguments))
        assert answer.headers["Location"] == page.address()
    assert everything() == before


def test_the_finding_of_another_team_is_not_found(
    client: Client, cast: Cast, root: User, changed: Finding
) -> None:
    for user in (cast.user("stranger"), root):
        page = Page(client, user, team="elsewhere")
        assert page.do("resolve", changed, note="Mine.")[0] == 404
    changed.refresh_from_db()
    assert changed.handling == "OPEN"


def test_what_nobody_can_do_is_not_found(page: Page, changed: Finding) -> None:
    assert page.do("delete", changed)[0] == 404


# --- The page ---------------------------------------------------------------------------------------
def test_nothing_inconsistent_is_said_with_the_time_of_the_last_look(
    page: Page, audit: Audit
) -> None:
    html = page.get()
    assert "Nothing is inconsistent." in html
    assert "Nobody has looked yet." in html
    assert "The audit has not looked yet." in html

    audit()
    html = page.get()
    assert "Nothing is inconsistent." in html
    assert "Last looked 0 s ago:" in html

    AuditRun.objects.update(finished_at=database_now() - timedelta(hours=2))
    assert "The audit has missed its turns" in page.get()


def test_a_finding_shows_what_it_is_about_since_when_and_why(page: Page, in_doubt: Finding) -> None:
    html = page.get()

    ticket = Ticket.objects.get()
    for text in (
        "Running past its lease",
        "The worker disappeared.",
        "Warning",
        "Ambiguous",
        "The start is dated in the future.",
        "(48 min",
        "(once)",
        "<code>task.started_at</code>",
        "Repair anyway",
        f"run {in_doubt.run_id}",
        reverse("task", args=["support", in_doubt.subject_id]),
        reverse("ticket", args=["support", ticket.number]),
    ):
        assert text in html


@pytest.mark.parametrize("anomaly", ANOMALIES, ids=str)
def test_every_kind_of_finding_can_be_shown(
    client: Client, cast: Cast, root: User, audit: Audit, anomaly: Anomaly
) -> None:
    anomaly.nonsense(anomaly.make(cast))
    audit()
    rows = Finding.objects.filter(code=anomaly.code)
    assert rows

    html = Page(client, root, team=None).get()

    for row in rows:
        assert f'id="finding-{row.pk}"' in html
        for doubt in wording.doubts_in_words(row.doubts):
            assert f"<li>{doubt}</li>" in html


def test_what_belongs_to_no_team_is_on_the_page_of_all_teams_alone(
    client: Client, cast: Cast, root: User, of_no_team: Finding
) -> None:
    here = f'id="finding-{of_no_team.pk}"'

    assert here not in Page(client, cast.user("admin")).get()
    html = Page(client, root, team=None).get()
    assert here in html
    assert "of no team" in html


def test_the_page_of_all_teams_names_the_team(client: Client, root: User, changed: Finding) -> None:
    html = Page(client, root, team=None).get()

    assert "Support" in html
    assert reverse("health", args=["support"]) in html


def test_hostile_evidence_is_shown_as_text(page: Page, changed: Finding) -> None:
    Ticket.objects.update(title=HOSTILE)
    Finding.objects.update(
        code=HOSTILE[:40],
        evidence={HOSTILE: HOSTILE, "a.list": [HOSTILE], "a.dict": {HOSTILE: HOSTILE}},
        doubts=[HOSTILE],
        action="FAILED",
        acted_at=database_now(),
        action_detail=HOSTILE,
        handling="ACKNOWLEDGED",
        handled_at=database_now(),
        note=HOSTILE,
    )
    AuditRun.objects.update(codes=[HOSTILE], errors={HOSTILE: HOSTILE})

    html = page.get()

    assert "<script>alert" not in html
    assert html.count("&lt;script&gt;alert") >= 9


def test_senseless_dates_do_not_break_the_page(page: Page, changed: Finding) -> None:
    User.objects.update(time_zone="America/Los_Angeles")
    first = datetime(1, 1, 1, tzinfo=UTC)
    Finding.objects.update(since=first, evidence={"a.b": first.isoformat()})
    Task.objects.update(due_at=first)

    assert "0001-01-01T00:00:00+00:00" in page.get()


def test_times_of_the_evidence_are_in_the_readers_zone(page: Page, changed: Finding) -> None:
    User.objects.update(time_zone="Asia/Shanghai")
    Finding.objects.update(evidence={"event.at": "2026-03-01T20:00:00+00:00"})

    html = page.get()

    assert 'title="2026-03-01T20:00:00+00:00">2026-03-02 04:00:00</time>' in html


@pytest.mark.parametrize("team", ["support", None])
def test_a_broker_that_does_not_answer_is_said(
    client: Client, cast: Cast, root: User, team: str | None
) -> None:
    use_broker("redis://127.0.0.1:1/0")

    html = Page(client, root, team).get()

    assert "The broker could not be read." in html


@pytest.mark.parametrize("team", ["support", None])
def test_both_languages_render(
    client: Client, root: User, in_doubt: Finding, team: str | None
) -> None:
    page = Page(client, root, team)

    assert "Running past its lease" in page.get(**{"accept-language": "en"})
    with translation.override("zh-hans"):
        title = str(CHECKS["expired_lease"].title)
    assert title in page.get(**{"accept-language": "zh-CN"})


def test_runs_are_a_chart_and_a_table(page: Page, changed: Finding) -> None:
    AuditRun.objects.create(trigger="BEAT", started_at=database_now() - timedelta(hours=1))
    AuditRun.objects.create(
        trigger="BEAT",
        started_at=database_now(),
        finished_at=database_now(),
        duration_ms=7,
        errors={"unproven": "DataError: secret"},
    )

    html = page.get()

    for text in (
        'role="img"',
        "Durations of the latest audit runs",
        "run-interrupted",
        "run-failed",
        "run-found",
        "The runs as a table",
        "could not be carried out: Completed without proof",
    ):
        assert text in html
    assert "secret" not in html


def test_many_findings_have_pages(
    page: Page, changed: Finding, monkeypatch: pytest.MonkeyPatch, cast: Cast, audit: Audit
) -> None:
    newer = [behind_its_back(cast, audit) for _ in range(2)]
    monkeypatch.setattr(selectors, "OPEN", 2)

    html = page.get()

    assert f'id="finding-{changed.pk}"' not in html
    assert f"?before={newer[0].pk}" in html
    older = page.get(f"?before={newer[0].pk}")
    assert f'id="finding-{changed.pk}"' in older
    assert f'id="finding-{newer[0].pk}"' not in older


@pytest.mark.parametrize("query", ["?before=x", "?before=-1", "?before=" + "9" * 40, "?before=²"])
def test_odd_addresses_show_the_page(page: Page, changed: Finding, query: str) -> None:
    assert f'id="finding-{changed.pk}"' in page.get(query)


@pytest.mark.parametrize("team", ["support", None])
def test_the_page_costs_no_more_queries_for_more_rows(
    client: Client, cast: Cast, root: User, audit: Audit, changed: Finding, team: str | None
) -> None:
    page = Page(client, root, team)

    def count() -> int:
        with CaptureQueriesContext(connection) as captured:
            page.get()
        return len(captured)

    count()  # What is cached for good is cached now.
    few = count()
    for _ in range(3):
        anomalies.worker_vanished(cast)
        behind_its_back(cast, audit)

    assert count() == few <= 16


# --- What people do ---------------------------------------------------------------------------------
def test_check_now_looks_at_the_team_and_says_what_was_found(page: Page, cast: Cast) -> None:
    assert "The audit found nothing." in page.check_now()

    anomalies.changed_behind_its_back(version=9)(cast)
    anomalies.worker_vanished(cast)
    html = page.check_now()

    assert "The audit found 2 inconsistencies, of which 1 are left for a person." in html
    last = AuditRun.objects.latest("id")
    assert (last.trigger, last.team, last.actor) == ("PERSON", cast.team, cast.user("admin"))
    assert Task.objects.filter(run=2).exists()


def test_check_now_looks_at_all_teams_for_a_superuser(
    client: Client, cast: Cast, root: User
) -> None:
    html = Page(client, root, team=None).check_now()

    assert "The audit found nothing." in html
    last = AuditRun.objects.latest("id")
    assert (last.trigger, last.team, last.actor) == ("PERSON", None, root)


def test_check_now_says_what_could_not_be_carried_out(
    client: Client, cast: Cast, root: User
) -> None:
    use_broker("redis://127.0.0.1:1/0")

    html = Page(client, root, team=None).check_now()

    assert "These checks could not be carried out: Messages that nobody comes for" in html


@pytest.mark.django_db(transaction=True)
def test_check_now_is_refused_while_another_audit_runs(
    client: Client, transactional_db: None
) -> None:
    root = UserFactory(is_superuser=True)
    answers = []

    def press() -> None:
        try:
            answers.append(Page(client, root, team=None).check_now())
        finally:
            connection.close()

    with audit_lane() as free:
        assert free
        thread = Thread(target=press)
        thread.start()
        thread.join()

    assert "Another audit is running." in answers[0]
    assert not AuditRun.objects.exists()


def test_acknowledging_needs_no_note(page: Page, cast: Cast, changed: Finding) -> None:
    status, html = page.do("acknowledge", changed)

    assert status == 200
    assert "It is noted that you look after this." in html
    changed.refresh_from_db()
    assert (changed.handling, changed.handled_by) == ("ACKNOWLEDGED", cast.user("admin"))
    assert f"{changed.pk}/acknowledge/" in html  # The form's own address.
    assert ">Acknowledge<" not in html
    assert "Acknowledged" in html


def test_resolving_takes_a_note_and_asks_for_nobody_any_more(page: Page, changed: Finding) -> None:
    _, html = page.do("resolve", changed, note="A script\nof mine.")

    assert "The finding is resolved." in html
    assert "wait for a decision" not in html
    assert "A script<br>of mine." in html
    changed.refresh_from_db()
    assert (changed.handling, changed.note) == ("RESOLVED", "A script\nof mine.")
    assert ">Resolve<" not in html


@pytest.mark.parametrize("team", ["support", None])
@pytest.mark.parametrize(
    ("note", "said"), [("", "This must not be empty."), ("x" * 2001, "This is too long.")]
)
def test_a_note_that_is_refused_is_kept_with_its_error_at_the_field(
    client: Client, root: User, changed: Finding, team: str | None, note: str, said: str
) -> None:
    page = Page(client, root, team)

    status, html = page.do("resolve", changed, note=note)

    assert status == 400
    assert html.count(said) == 2
    assert f'href="#note-{changed.pk}"' in html
    assert f'aria-describedby="error-{changed.pk}"' in html
    assert f">{note}</textarea>" in html
    assert f'action="{page.address()}{changed.pk}/acknowledge/"' in html
    changed.refresh_from_db()
    assert changed.handling == "OPEN"


def test_a_note_on_what_is_gone_by_now_is_not_lost(page: Page, changed: Finding) -> None:
    Finding.objects.update(closed_at=database_now())

    status, html = page.do("resolve", changed, note="A script <of mine>.")

    assert status == 409
    assert "This is already gone." in html
    assert "A script &lt;of mine&gt;.</textarea>" in html


def test_repairing_what_is_in_doubt(
    page: Page, in_doubt: Finding, django_capture_on_commit_callbacks: Any
) -> None:
    _, html = page.do("repair", in_doubt)

    assert "It was repaired." in html
    assert "Put back in the queue" in html
    in_doubt.refresh_from_db()
    assert in_doubt.action == "REQUEUED"
    assert "This is already gone." in page.do("repair", in_doubt)[1]


def test_repairing_what_is_gone_when_looked_at_again_says_so(page: Page, in_doubt: Finding) -> None:
    update_task(in_doubt.subject_id, status="WAITING", execution_id=None, lease_expires_at=None)

    assert "It was gone when looked at again." in page.do("repair", in_doubt)[1]


def test_what_has_no_repair_has_no_button_and_says_so(page: Page, changed: Finding) -> None:
    assert "/repair/" not in page.get()

    assert "There is no repair for findings of this kind." in page.do("repair", changed)[1]


def test_a_certain_finding_whose_repair_failed_can_be_tried_again(
    page: Page, cast: Cast, audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: Any, **_named: Any) -> None:
        raise OSError("full")

    anomalies.worker_vanished(cast)
    with monkeypatch.context() as patch:
        patch.setattr(repair.CHECKS["expired_lease"], "repair", full)
        audit(codes=["expired_lease"])

    html = page.get()
    assert "The repair failed" in html
    assert "OSError: full" in html
    assert ">Repair<" in html
    assert "Repair anyway" not in html

    assert "It was repaired." in page.do("repair", Finding.objects.get())[1]


def test_a_person_who_lost_the_role_meanwhile_is_refused(
    page: Page, cast: Cast, changed: Finding
) -> None:
    Membership.objects.filter(pk=cast.admin.pk).update(role="AGENT")

    assert page.do("resolve", changed, note="Mine.")[0] == 403
