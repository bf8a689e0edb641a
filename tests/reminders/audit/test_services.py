"""What people may do about findings, and who."""

from datetime import timedelta
from typing import Any

import pytest

from helpdesk.clock import database_now
from helpdesk.errors import InvalidInput, InvalidTransition, NotAllowed, NotFound
from reminders.audit import repair, services
from reminders.models import AuditRun, Finding, Task
from tests.cast import Cast
from tests.factories import UserFactory
from tests.reminders.audit import anomalies
from tests.reminders.audit.conftest import Audit, Lines, everything

REFUSED = [("agent", NotAllowed), ("customer", NotAllowed), ("stranger", NotFound)]


def found(cast: Cast, audit: Audit) -> Finding:
    anomalies.changed_behind_its_back(version=9)(cast)
    audit()
    return Finding.objects.get()


def in_doubt(cast: Cast, audit: Audit) -> Finding:
    pk = anomalies.worker_vanished(cast)
    anomalies.update_task(pk, started_at=database_now() + timedelta(days=1))
    audit(codes=["expired_lease"])
    return Finding.objects.get()


CALLS: list[Any] = [
    lambda row, user: services.acknowledge_finding(finding_id=row.pk, actor_id=user.pk),
    lambda row, user: services.resolve_finding(
        finding_id=row.pk, actor_id=user.pk, note="A script; mended."
    ),
    lambda row, user: services.repair_finding(finding_id=row.pk, actor_id=user.pk),
    lambda row, user: services.audit_now(actor_id=user.pk, team_id=row.team_id),
]


@pytest.mark.parametrize(("who", "error"), REFUSED)
@pytest.mark.parametrize("call", CALLS, ids=["acknowledge", "resolve", "repair", "audit"])
def test_only_the_teams_administrators_may(
    cast: Cast, audit: Audit, call: Any, who: str, error: type[Exception]
) -> None:
    row = in_doubt(cast, audit)
    before = (everything(), list(Finding.objects.values()), AuditRun.objects.count())

    with pytest.raises(error):
        call(row, cast.user(who))

    assert (everything(), list(Finding.objects.values()), AuditRun.objects.count()) == before


def test_what_belongs_to_no_team_is_for_superusers(cast: Cast, audit: Audit) -> None:
    anomalies.nobody_takes_messages(cast)
    audit(codes=["stale_messages"])
    row = Finding.objects.get()
    assert row.team is None

    with pytest.raises(NotAllowed):
        services.acknowledge_finding(finding_id=row.pk, actor_id=cast.user("admin").pk)
    with pytest.raises(NotAllowed):
        services.audit_now(actor_id=cast.user("admin").pk)

    root = UserFactory(is_superuser=True)
    services.acknowledge_finding(finding_id=row.pk, actor_id=root.pk)
    row.refresh_from_db()
    assert (row.handling, row.handled_by) == ("ACKNOWLEDGED", root)
    services.audit_now(actor_id=root.pk)
    run = AuditRun.objects.latest("id")
    assert (run.trigger, run.actor, run.team) == ("PERSON", root, None)


def test_acknowledging_and_resolving_say_who_when_and_why(cast: Cast, audit: Audit) -> None:
    row = found(cast, audit)
    admin = cast.user("admin")
    services.acknowledge_finding(finding_id=row.pk, actor_id=admin.pk, note="  I am on it. ")
    row.refresh_from_db()
    assert (row.handling, row.handled_by, row.note) == ("ACKNOWLEDGED", admin, "I am on it.")

    services.resolve_finding(finding_id=row.pk, actor_id=admin.pk, note="A script; mended.")
    row.refresh_from_db()
    assert (row.handling, row.note, row.closed_at) == ("RESOLVED", "A script; mended.", None)
    assert row.handled_at is not None


@pytest.mark.parametrize("note", ["", "   ", "x" * 2001, "a\x00b", None])
def test_resolving_needs_a_note_that_makes_sense(cast: Cast, audit: Audit, note: Any) -> None:
    row = found(cast, audit)

    with pytest.raises(InvalidInput) as refusal:
        services.resolve_finding(finding_id=row.pk, actor_id=cast.user("admin").pk, note=note)

    assert list(refusal.value.data["errors"]) == ["note"]
    row.refresh_from_db()
    assert row.handling == "OPEN"


def test_what_is_gone_cannot_be_handled(cast: Cast, audit: Audit) -> None:
    row = found(cast, audit)
    Finding.objects.update(closed_at=database_now())

    with pytest.raises(InvalidTransition):
        services.acknowledge_finding(finding_id=row.pk, actor_id=cast.user("admin").pk)
    with pytest.raises(NotFound):
        services.acknowledge_finding(finding_id=0, actor_id=UserFactory(is_superuser=True).pk)


def test_a_person_may_have_mended_what_is_in_doubt(
    cast: Cast, audit: Audit, lines: Lines, django_capture_on_commit_callbacks: Any
) -> None:
    row = in_doubt(cast, audit)
    admin = cast.user("admin")

    with django_capture_on_commit_callbacks(execute=True):
        services.repair_finding(finding_id=row.pk, actor_id=admin.pk)

    row.refresh_from_db()
    assert (row.action, row.closed_at is not None) == ("REQUEUED", True)
    assert row.acted_run is not None
    assert (row.acted_run.trigger, row.acted_run.actor) == ("PERSON", admin)
    assert Task.objects.get().run == 2
    assert [line["action"] for line in lines("audit.repair")] == ["REQUEUED"]


def test_what_has_no_repair_says_so(cast: Cast, audit: Audit) -> None:
    row = found(cast, audit)

    with pytest.raises(InvalidTransition, match="no repair"):
        services.repair_finding(finding_id=row.pk, actor_id=cast.user("admin").pk)


def test_a_repair_that_fails_changes_nothing_and_says_why(
    cast: Cast, audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = in_doubt(cast, audit)
    monkeypatch.setattr(repair.CHECKS["expired_lease"], "repair", lambda *_a, **_k: None)
    before = everything()

    with pytest.raises(InvalidTransition, match="StillThere"):
        services.repair_finding(finding_id=row.pk, actor_id=cast.user("admin").pk)

    assert everything() == before
    row.refresh_from_db()
    assert row.closed_at is None
