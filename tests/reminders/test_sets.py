"""Many tasks in one claim and one transaction, and one bad one among them."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from notifications import services as notices
from notifications.models import ReminderNotification
from reminders import processor
from reminders.models import Task
from tests.cast import Cast
from tests.factories import make_due, open_ticket, run
from tickets.models import Ticket, TicketEvent


def due_tasks(cast: Cast, count: int) -> list[Task]:
    return [make_due(open_ticket(cast)) for _ in range(count)]


def queries_for(tasks: Sequence[Task]) -> int:
    with CaptureQueriesContext(connection) as captured:
        run(*tasks)
    return len(captured)


def test_500_due_reminders_are_one_claim_and_one_transaction_with_as_many_queries_as_two(
    cast: Cast,
) -> None:
    """With the default set size; 500 firings share their statements."""
    few = queries_for(due_tasks(cast, 2))
    tasks = due_tasks(cast, 500)

    with CaptureQueriesContext(connection) as captured:
        run(*tasks)

    assert len(captured) == few
    statements = [query["sql"] for query in captured]
    assert sum("WITH hint" in sql for sql in statements) == 1
    assert sum("WITH step" in sql for sql in statements) == 1
    assert ReminderNotification.objects.count() == 502
    assert TicketEvent.objects.filter(kind="TIMEOUT_REMINDED").count() == 502
    assert Task.objects.filter(status="COMPLETED").count() == 502
    assert not Ticket.objects.exclude(version=1).exists()
    # One lease for all of them.
    leases = Task.objects.filter(pk__in=[task.pk for task in tasks]).values_list(
        "transitions__execution_id", flat=True
    )
    assert len(set(leases) - {None}) == 1


def test_one_poisoned_row_does_not_stop_the_other_499(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = due_tasks(cast, 500)
    poisoned = tasks[233]
    deliver = notices.deliver

    def choke(deliveries: Sequence[notices.Delivery], **arguments: object) -> object:
        if any(each.ticket_id == poisoned.ticket_id for each in deliveries):
            raise ValueError("poison")
        return deliver(deliveries, **arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(notices, "deliver", choke)

    run(*tasks)

    assert ReminderNotification.objects.count() == 499
    assert Task.objects.filter(status="COMPLETED").count() == 499
    poisoned.refresh_from_db()
    assert (poisoned.status, poisoned.attempts) == ("WAITING", 1)
    assert poisoned.last_error == "ValueError: poison"
    assert not TicketEvent.objects.filter(
        ticket=poisoned.ticket_id, kind="TIMEOUT_REMINDED"
    ).exists()
    assert not Task.objects.filter(status="RUNNING").exists()


def test_a_set_of_due_early_and_obsolete_tasks_gives_each_its_own_outcome(cast: Cast) -> None:
    due, obsolete = due_tasks(cast, 2)
    Ticket.objects.filter(pk=obsolete.ticket_id).update(due_at=None)
    early = Task.objects.get(ticket=open_ticket(cast))

    with pytest.raises(processor.NotDueYet):
        run(due, early, obsolete)

    for task in (due, early, obsolete):
        task.refresh_from_db()
    assert (due.status, due.result_summary) == ("COMPLETED", "Sent to 1 person.")
    assert (early.status, early.available_at) == ("WAITING", early.due_at)
    assert obsolete.result_summary == "Skipped: the reminder was cancelled."


def test_how_late_is_counted_from_due_to_the_last_moment(cast: Cast) -> None:
    task = make_due(open_ticket(cast), ago=timedelta(hours=2))

    run(task)

    task.refresh_from_db()
    notice = ReminderNotification.objects.get()
    late = notice.created_at - notice.due_at
    assert task.evidence["late_ms"] == notice.late_ms == late // timedelta(milliseconds=1)
    assert late >= timedelta(hours=2)
