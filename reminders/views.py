"""Pages of the background tasks, for staff."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_safe

from helpdesk.errors import InvalidTransition, NotAllowed, NotFound
from helpdesk.pages import signed_in
from reminders import selectors, services
from reminders.states import TaskStatus
from tickets.selectors import Viewer, viewer

PAGE_SIZE = 50


@require_safe
def task_list(request: HttpRequest, slug: str) -> HttpResponse:
    who = _staff(request, slug)
    status = request.GET.get("status", "")
    before = request.GET.get("before", "")
    rows = selectors.task_list(
        team_id=who.team.pk,
        status=status if status in TaskStatus.values else "",
        before=int(before)
        if before.isascii() and before.isdecimal() and len(before) < 19
        else None,
        limit=PAGE_SIZE + 1,
    )
    return render(
        request,
        "reminders/tasks.html",
        {
            "viewer": who,
            "tasks": rows[:PAGE_SIZE],
            "older": rows[PAGE_SIZE - 1].id if len(rows) > PAGE_SIZE else None,
            "status": status,
            "statuses": TaskStatus.choices,
        },
    )


@require_safe
def task_page(request: HttpRequest, slug: str, task_id: int) -> HttpResponse:
    who = _staff(request, slug)
    task = selectors.task_detail(team_id=who.team.pk, task_id=task_id)
    if task is None:
        raise NotFound
    return render(request, "reminders/task.html", {"viewer": who, "task": task})


@require_http_methods(["GET", "POST"])
def retry(request: HttpRequest, slug: str, task_id: int) -> HttpResponse:
    if request.method == "GET":  # Back from signing in.
        return redirect("task", slug=slug, task_id=task_id)
    who = viewer(user=signed_in(request), slug=slug)
    try:
        services.retry_task(team_id=who.team.pk, task_id=task_id, actor_id=who.user.pk)
    except InvalidTransition as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("The task is back in the queue."))
    return redirect("task", slug=slug, task_id=task_id)


def _staff(request: HttpRequest, slug: str) -> Viewer:
    who = viewer(user=signed_in(request), slug=slug)
    if not who.is_staff:
        raise NotAllowed
    return who
