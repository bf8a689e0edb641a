"""The pages of the background tasks."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from reminders.models import Task
from tests.cast import Cast
from tests.factories import act, make_due, open_ticket, run
from tickets import services

pytestmark = pytest.mark.usefixtures("plain_static")


def show(
    client: Client, cast: Cast, who: str, name: str = "tasks", query: str = "", **kwargs: Any
) -> tuple[int, str]:
    client.force_login(cast.user(who))
    answer = client.get(reverse(name, kwargs={"slug": cast.team.slug, **kwargs}) + query)
    return answer.status_code, answer.content.decode()


@pytest.fixture
def failed(cast: Cast) -> Task:
    task = make_due(open_ticket(cast))
    Task.objects.filter(pk=task.pk).update(status="FAILED", attempts=5, last_error="OSError: full")
    task.refresh_from_db()
    return task


def test_the_list_shows_status_run_progress_and_result(client: Client, cast: Cast) -> None:
    run(make_due(open_ticket(cast)))

    status, html = show(client, cast, "agent")

    assert status == 200
    for text in ("Completed", "100 %", "Sent to 1 person."):
        assert text in html


def test_the_list_filters_by_status_and_goes_on_by_id(
    client: Client, cast: Cast, failed: Task
) -> None:
    waiting = [Task.objects.get(ticket=open_ticket(cast)) for _ in range(52)]

    assert f"tasks/{failed.pk}/" in show(client, cast, "agent", query="?status=FAILED")[1]
    html = show(client, cast, "agent", query="?status=WAITING")[1]
    assert f"tasks/{failed.pk}/" not in html
    assert f"?before={waiting[2].pk}" in html
    older = show(client, cast, "agent", query=f"?before={waiting[2].pk}")[1]
    assert f"tasks/{waiting[1].pk}/" in older
    assert f"tasks/{waiting[2].pk}/" not in older


@pytest.mark.parametrize(
    "query", ["?status=NONSENSE", "?before=x", "?before=-1", "?before=" + "9" * 40, "?before=²"]
)
def test_odd_addresses_show_the_list(client: Client, cast: Cast, query: str) -> None:
    assert show(client, cast, "agent", query=query)[0] == 200


def test_a_task_shows_its_history_and_last_error(client: Client, cast: Cast, failed: Task) -> None:
    _, html = show(client, cast, "agent", "task", task_id=failed.pk)

    for text in ("OSError: full", "Planned", "Retry"):
        assert text in html


def test_a_person_retries_from_the_page(client: Client, cast: Cast, failed: Task) -> None:
    client.force_login(cast.user("agent"))
    address = reverse("retry-task", kwargs={"slug": cast.team.slug, "task_id": failed.pk})

    answer = client.post(address, follow=True)
    assert "back in the queue" in answer.content.decode()
    again = client.post(address, follow=True)
    assert "Only a failed task can be retried." in again.content.decode()

    failed.refresh_from_db()
    assert (failed.status, failed.run) == ("WAITING", 2)


def test_a_retry_opened_by_address_leads_to_its_task_and_retries_nothing(
    client: Client, cast: Cast, failed: Task
) -> None:
    """That is where somebody lands who had to sign in again after pressing the button."""
    client.force_login(cast.user("agent"))
    address = {"slug": cast.team.slug, "task_id": failed.pk}

    answer = client.get(reverse("retry-task", kwargs=address))

    assert answer.headers["Location"] == reverse("task", kwargs=address)
    failed.refresh_from_db()
    assert failed.status == "FAILED"


def test_a_failed_task_can_be_retried_even_if_it_left_no_error(
    client: Client, cast: Cast, failed: Task
) -> None:
    Task.objects.filter(pk=failed.pk).update(last_error="")

    _, html = show(client, cast, "agent", "task", task_id=failed.pk)

    assert f"tasks/{failed.pk}/retry/" in html


@pytest.mark.parametrize(("who", "expected"), [("customer", 403), ("stranger", 404)])
def test_tasks_are_for_the_staff_of_the_team(
    client: Client, cast: Cast, failed: Task, who: str, expected: int
) -> None:
    assert show(client, cast, who)[0] == expected
    assert show(client, cast, who, "task", task_id=failed.pk)[0] == expected
    address = reverse("retry-task", kwargs={"slug": cast.team.slug, "task_id": failed.pk})
    assert client.post(address).status_code == expected
    failed.refresh_from_db()
    assert failed.status == "FAILED"


def test_the_task_of_another_team_is_not_found(client: Client, cast: Cast, failed: Task) -> None:
    client.force_login(cast.user("stranger"))
    address = {"slug": cast.other_team.slug, "task_id": failed.pk}

    assert client.get(reverse("task", kwargs=address)).status_code == 404
    assert client.post(reverse("retry-task", kwargs=address)).status_code == 404


def test_the_summary_is_in_the_readers_language(client: Client, cast: Cast) -> None:
    ticket = act(cast, services.schedule_reminder, open_ticket(cast), minutes=None)
    task = Task.objects.get(ticket=ticket)
    client.force_login(cast.user("agent"))

    answer = client.get(
        reverse("task", kwargs={"slug": cast.team.slug, "task_id": task.pk}),
        headers={"accept-language": "zh-CN"},
    )

    assert "已跳过" in answer.content.decode()
    assert task.result_summary == "Skipped: the reminder was cancelled."
