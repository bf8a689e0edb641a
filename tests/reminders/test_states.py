"""Moves follow the table of transitions, and the database's own rules stand behind them."""

import uuid
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from helpdesk.clock import database_now
from helpdesk.constraints import violates
from reminders import moves
from reminders.models import Task
from reminders.moves import Move
from reminders.states import TRANSITIONS, Cause, TaskStatus
from tests.cast import Cast
from tests.factories import make_due, open_ticket

CLAIMS = {Cause.CLAIMED, Cause.TAKEN_OVER}
ALL = [step for step in product(TaskStatus, TaskStatus, Cause) if step[2] not in CLAIMS]


@pytest.mark.parametrize(
    ("before", "after", "cause"), ALL, ids=lambda value: getattr(value, "value", value)
)
def test_a_move_that_is_not_in_the_table_cannot_even_be_made(
    before: TaskStatus, after: TaskStatus, cause: Cause
) -> None:
    task = Task(pk=1, status=before)

    if (before, after, cause) in TRANSITIONS:
        assert Move(task=task, to=after, cause=cause).task is task
    else:
        with pytest.raises(ValueError, match="is no transition"):
            Move(task=task, to=after, cause=cause)


@pytest.mark.parametrize(
    "changed",
    [{"run": 2}, {"status": "FAILED"}, {"lease": True}],
    ids=["another run", "another status", "another lease"],
)
def test_a_move_of_a_row_that_has_changed_since_it_was_read_does_nothing(
    cast: Cast, changed: dict[str, Any]
) -> None:
    task = make_due(open_ticket(cast))
    now = database_now()
    move = Move(task=task, to=TaskStatus.COMPLETED, cause=Cause.SKIPPED, evidence={})
    if changed.pop("lease", False):
        moves.claim(
            team_id=task.team_id,
            hints=[(task.pk, 1)],
            lease=uuid.uuid4(),
            ttl=timedelta(seconds=9),
        )
    else:
        Task.objects.filter(pk=task.pk).update(**changed)
    before = Task.objects.filter(pk=task.pk).values().get()
    history = task.transitions.count()

    assert moves.move([move], now=now) == 0

    assert Task.objects.filter(pk=task.pk).values().get() == before
    assert task.transitions.count() == history


@pytest.mark.parametrize(
    ("fields", "constraint"),
    [
        ({"status": "RUNNING"}, "task_lease_exactly_while_running"),
        ({"lease_expires_at": database_now}, "task_lease_exactly_while_running"),
        ({"status": "COMPLETED"}, "task_evidence_exactly_when_completed"),
        ({"evidence": {}}, "task_evidence_exactly_when_completed"),
        ({"due_at": None}, "task_due_while_active"),
        ({"progress": 101}, "task_progress_percent"),
        ({"status": "LOST"}, "task_status_known"),
        ({"kind": "OTHER"}, "task_kind_known"),
    ],
)
def test_the_database_refuses_a_task_that_makes_no_sense(
    cast: Cast, fields: dict[str, Any], constraint: str
) -> None:
    task = make_due(open_ticket(cast))
    fields = {name: value() if callable(value) else value for name, value in fields.items()}

    with pytest.raises(IntegrityError) as refusal, transaction.atomic():
        Task.objects.filter(pk=task.pk).update(**fields)

    assert violates(refusal.value, constraint)


def test_the_database_refuses_a_second_active_task_for_one_intent(cast: Cast) -> None:
    copy = make_due(open_ticket(cast))
    copy.pk = None

    with pytest.raises(IntegrityError) as refusal, transaction.atomic():
        copy.save(force_insert=True)

    assert violates(refusal.value, "one_active_task_per_intent")
