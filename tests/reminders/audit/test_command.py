"""`manage.py audit` and `manage.py prune`."""

import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from reminders.models import AuditRun, Finding
from tests.cast import Cast
from tests.reminders.audit import anomalies
from tests.reminders.audit.conftest import everything
from tickets.locks import audit_lane


def command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """The exit status and what is printed."""
    status = 0
    try:
        call_command("audit", *words)
    except SystemExit as end:
        status = int(end.code or 0)
    return status, capsys.readouterr().out


def test_a_healthy_queue_is_one_line_and_status_0(
    cast: Cast, capsys: pytest.CaptureFixture[str]
) -> None:
    anomalies.assigned(cast)

    status, said = command(capsys)

    assert status == 0
    assert said.startswith(f"run {AuditRun.objects.get().pk}: nothing found, 0 gone; ")
    assert len(said.splitlines()) == 1


def test_what_was_mended_is_a_table_and_status_0(
    cast: Cast, capsys: pytest.CaptureFixture[str]
) -> None:
    pk = anomalies.worker_vanished(cast)

    status, said = command(capsys)

    head, row, summary = said.splitlines()
    assert status == 0
    assert head.split() == [
        "check",
        "subject",
        "team",
        "severity",
        "verdict",
        "for",
        "seen",
        "done",
    ]
    assert row.split() == [
        *("expired_lease", "task", str(pk), "support", "warning", "certain"),
        *("48", "min", "1", "requeued"),
    ]
    assert "1 found, 1 settled, 0 left" in summary


def test_what_is_left_is_status_1(cast: Cast, capsys: pytest.CaptureFixture[str]) -> None:
    anomalies.changed_behind_its_back(version=9)(cast)
    status, said = command(capsys)
    assert (status, "1 found, 0 settled, 1 left" in said) == (1, True)
    assert "unexplained  ticket " in said
    assert "(#1)  support  error" in said


def test_what_is_in_doubt_says_why(cast: Cast, capsys: pytest.CaptureFixture[str]) -> None:
    pk = anomalies.worker_vanished(cast)
    anomalies.update_task(pk, started_at=anomalies.tomorrow())
    assert "in doubt: started_in_future" in command(capsys, "--check", "expired_lease")[1]


def test_a_dry_run_writes_nothing_and_is_status_1(
    cast: Cast, capsys: pytest.CaptureFixture[str]
) -> None:
    anomalies.worker_vanished(cast)
    before = everything()

    status, said = command(capsys, "--dry-run")

    assert (status, "dry run: 1 found, 0 settled, 1 left" in said) == (1, True)
    assert everything() == before
    assert not Finding.objects.exists()


def test_json_is_one_document_with_all_there_is(
    cast: Cast, capsys: pytest.CaptureFixture[str]
) -> None:
    anomalies.changed_behind_its_back(version=9)(cast)

    status, said = command(capsys, "--json")

    document: dict[str, Any] = json.loads(said)
    row = Finding.objects.get()
    assert (status, document["unrepaired"], document["run"]) == (1, 1, row.run_id)
    (found,) = document["findings"]
    assert (found["finding"], found["check"], found["evidence"]) == (
        row.pk,
        "unexplained",
        row.evidence,
    )
    assert document["errors"] == {}


def test_team_and_check_limit_it(cast: Cast, capsys: pytest.CaptureFixture[str]) -> None:
    anomalies.changed_behind_its_back(version=9)(cast)

    assert command(capsys, "--team", "elsewhere")[0] == 0
    assert command(capsys, "--check", "duplicate", "--check", "obsolete")[0] == 0
    assert command(capsys, "--team", "support", "--check", "unexplained", "--full")[0] == 1


def test_what_cannot_be_is_status_2_and_a_sentence(
    cast: Cast, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandError, match="no team “nowhere”") as refusal:
        command(capsys, "--team", "nowhere")
    assert refusal.value.returncode == 2
    with pytest.raises(CommandError, match="invalid choice"):
        command(capsys, "--check", "everything")


@pytest.mark.django_db(transaction=True)
def test_while_another_audit_runs_it_says_so(
    transactional_db: None, capsys: pytest.CaptureFixture[str]
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from django.db import connections

    def in_a_session_of_its_own() -> None:
        try:
            with pytest.raises(CommandError, match="Another audit is running") as refusal:
                call_command("audit")
            assert refusal.value.returncode == 2
        finally:
            connections.close_all()

    with audit_lane() as free, ThreadPoolExecutor(1) as pool:
        assert free
        pool.submit(in_a_session_of_its_own).result(20)


def test_prune_says_what_it_deleted(cast: Cast, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("prune")
    assert capsys.readouterr().out == "0 findings, 0 runs, 0 transitions, 0 receipts\n"
