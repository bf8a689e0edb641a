"""Rules about calls and declarations, which import contracts cannot see."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.db.models import ForeignKey

from reminders.models import Task

APPS = ("helpdesk", "tickets", "reminders", "notifications")
# Who may lock rows. Everybody else gets the lock from `tickets.locks`.
LOCKERS = {
    "tickets/locks.py",
    "reminders/schedule.py",
    "reminders/outbox.py",
    "reminders/recovery.py",
    "reminders/audit/repair.py",
    "reminders/audit/services.py",
}
# Who may open a transaction.
OPENERS = {
    "tickets/locks.py",
    "tickets/services/members.py",
    "reminders/outbox.py",
    "reminders/processor.py",
    "reminders/recovery.py",
    "reminders/audit/record.py",
    "reminders/audit/repair.py",
    "reminders/audit/prune.py",
}


def sources() -> Iterator[Path]:
    for app in APPS:
        for path in sorted((settings.BASE_DIR / app).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def calls(name: str) -> Iterator[tuple[str, ast.Call]]:
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called = getattr(node.func, "attr", getattr(node.func, "id", None))
            if called == name:
                yield path.relative_to(settings.BASE_DIR).as_posix(), node


def test_row_locks_are_taken_by_few_and_say_their_strength_and_their_table() -> None:
    wrong = [
        f"{file}:{call.lineno}"
        for file, call in calls("select_for_update")
        if file not in LOCKERS or not {word.arg for word in call.keywords} >= {"no_key", "of"}
    ]
    assert wrong == []


def test_transactions_are_opened_by_few_and_are_outermost() -> None:
    wrong = [
        f"{file}:{call.lineno}"
        for file, call in calls("atomic")
        if file not in OPENERS or "durable" not in {word.arg for word in call.keywords}
    ]
    assert wrong == []


def test_a_saved_row_always_names_its_fields() -> None:
    """A bare save() writes back whatever was read, over what somebody else wrote meanwhile."""
    edges = re.compile(r"(admin|forms|demo)\.py$")
    wrong = [
        f"{file}:{call.lineno}"
        for file, call in calls("save")
        if not edges.search(file)
        and not {word.arg for word in call.keywords} & {"update_fields", "force_insert"}
    ]
    assert wrong == []


def test_nobody_reaches_tasks_backwards() -> None:
    for field in Task._meta.get_fields():
        if isinstance(field, ForeignKey):
            assert field.remote_field.hidden, field.name


def test_only_the_moves_write_a_tasks_status() -> None:
    """Status, run and lease change in one module, each with its line in the history."""
    pattern = re.compile(r"UPDATE reminders_task|\.status = TaskStatus")
    writers = {
        path.relative_to(settings.BASE_DIR).as_posix()
        for path in sources()
        if pattern.search(path.read_text())
    }
    # The outbox notes when it published, and nothing else.
    assert writers == {"reminders/moves.py", "reminders/outbox.py"}


@pytest.mark.parametrize("app", APPS[1:])
def test_every_index_says_which_query_it_serves(app: str) -> None:
    text = (settings.BASE_DIR / app / "models.py").read_text()
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if "models.Index(" in line:
            assert lines[number - 1].strip().startswith("#"), f"{app}/models.py:{number + 1}"


def test_every_constraint_and_index_has_a_name_of_its_own() -> None:
    names = [
        constraint.name
        for model in apps.get_models()
        if model._meta.app_label in APPS
        for constraint in (*model._meta.constraints, *model._meta.indexes)
    ]
    assert len(names) == len(set(names)) > 30


def test_the_import_contracts_hold() -> None:
    result = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
