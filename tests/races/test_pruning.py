"""Forgetting waits for nobody, and nobody waits for it."""

import pytest
from django.db import transaction

from helpdesk.clock import database_now
from reminders.audit.prune import prune
from reminders.models import TaskTransition
from tests.cast import Cast, make_cast
from tests.factories import age, run
from tests.races.conftest import TIMEOUT, Threads
from tests.reminders.audit import anomalies
from tests.reminders.audit.test_prune import LONG_AGO


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


def test_rows_that_somebody_holds_are_left_for_the_next_time(cast: Cast, threads: Threads) -> None:
    age(anomalies.fired(cast).ticket, LONG_AGO)
    with transaction.atomic():
        held = TaskTransition.objects.select_for_update().order_by("id").first()
        assert held is not None
        assert threads.start(prune).result(TIMEOUT)["transitions"] == 2

    assert prune()["transitions"] == 1


def test_reminders_are_sent_while_it_deletes(cast: Cast, threads: Threads) -> None:
    age(anomalies.fired(cast).ticket, LONG_AGO)
    task = anomalies.active_task(age(anomalies.assigned(cast), anomalies.LONG))
    with transaction.atomic():
        TaskTransition.objects.filter(at__lt=database_now() - LONG_AGO).delete()
        threads.start(lambda: run(task)).result(TIMEOUT)

    task.refresh_from_db()
    assert task.status == "COMPLETED"
