"""The page behind the bell."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from notifications.models import ReminderNotification
from tests.cast import Cast
from tests.factories import act, make_due, open_ticket, run
from tickets import services

pytestmark = pytest.mark.usefixtures("plain_static")


@pytest.fixture
def notice(cast: Cast) -> ReminderNotification:
    """The agent has been reminded."""
    ticket = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)
    ticket = act(cast, services.schedule_reminder, ticket, minutes=5, note="Call back")
    run(make_due(ticket))
    return ReminderNotification.objects.get()


def test_the_bell_counts_and_the_page_says_what_why_and_how_late(
    cast: Cast, client: Client, notice: ReminderNotification
) -> None:
    client.force_login(cast.user("agent"))

    html = client.get("/notifications/").content.decode()

    for text in ("1 unread", "Call back", "You are responsible for this ticket.", "s late"):
        assert text in html
    assert (
        '<span class="badge text-bg-danger">1' in client.get("/t/support/tickets/").content.decode()
    )


def test_marking_one_and_all_as_read(
    cast: Cast, client: Client, notice: ReminderNotification
) -> None:
    client.force_login(cast.user("agent"))

    assert client.post(f"/notifications/{notice.pk}/read/").status_code == 302
    notice.refresh_from_db()
    assert notice.read_at is not None
    ReminderNotification.objects.update(read_at=None)
    assert client.post("/notifications/read-all/").status_code == 302
    notice.refresh_from_db()
    assert notice.read_at is not None


def test_an_address_that_marks_leads_to_the_notices_and_marks_nothing(
    cast: Cast, client: Client, notice: ReminderNotification
) -> None:
    """That is where somebody lands who had to sign in again after pressing the button."""
    client.force_login(cast.user("agent"))

    for address in (f"/notifications/{notice.pk}/read/", "/notifications/read-all/"):
        assert client.get(address).headers["Location"] == "/notifications/"
    notice.refresh_from_db()
    assert notice.read_at is None


def test_the_inbox_costs_no_more_queries_for_more_notices(
    cast: Cast, client: Client, notice: ReminderNotification
) -> None:
    client.force_login(cast.user("agent"))

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get("/notifications/").status_code == 200
        return len(captured)

    queries()  # What is cached for good is cached now.
    few = queries()
    for _ in range(5):
        ticket = act(cast, services.assign_ticket, open_ticket(cast), membership_id=cast.agent.pk)
        run(make_due(ticket))

    assert queries() == few
    assert ReminderNotification.objects.filter(user=cast.user("agent")).count() == 6


def test_nobody_reads_anybody_elses(
    cast: Cast, client: Client, notice: ReminderNotification
) -> None:
    client.force_login(cast.user("admin"))

    assert client.post(f"/notifications/{notice.pk}/read/").status_code == 404
    assert "Call back" not in client.get("/notifications/").content.decode()
    notice.refresh_from_db()
    assert notice.read_at is None


def test_a_customers_page_is_empty_and_says_nothing_of_reminders(
    cast: Cast, client: Client, notice: ReminderNotification
) -> None:
    client.force_login(cast.user("customer"))

    html = client.get("/notifications/").content.decode()

    assert "Nothing yet." in html
    assert "reminder" not in html.lower()
