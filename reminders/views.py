"""Pages of the background tasks, for staff, and of the queue's health, for those who decide about it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_safe

from helpdesk.errors import Busy, InvalidInput, InvalidTransition, NotAllowed, NotFound
from helpdesk.pages import signed_in
from reminders import selectors, services
from reminders.audit import selectors as health_selectors
from reminders.audit import services as audit_services
from reminders.audit.wording import report_in_words
from reminders.states import Action, TaskStatus
from tickets.selectors import Viewer, viewer

PAGE_SIZE = 50


@require_safe
def task_list(request: HttpRequest, slug: str) -> HttpResponse:
    who = _staff(request, slug)
    status = request.GET.get("status", "")
    rows = selectors.task_list(
        team_id=who.team.pk,
        status=status if status in TaskStatus.values else "",
        before=_before(request),
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


def _before(request: HttpRequest) -> int | None:
    """The last id of the page before, from the address."""
    before = request.GET.get("before", "")
    is_id = before.isascii() and before.isdecimal() and len(before) < 19
    return int(before) if is_id else None


# --- Health -----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Deed:
    """What a person can do about a finding: who does it, and what is said afterwards."""

    service: Callable[..., Any]
    done: Promise
    takes_note: bool = True


DEEDS: Final[dict[str, Deed]] = {
    "acknowledge": Deed(
        audit_services.acknowledge_finding, _("It is noted that you look after this.")
    ),
    "resolve": Deed(audit_services.resolve_finding, _("The finding is resolved.")),
    "repair": Deed(audit_services.repair_finding, _("It was repaired."), takes_note=False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A note that was not accepted. `error` is what is wrong with it; empty if something else was refused."""

    finding_id: int
    note: str
    error: str = ""


@require_safe
def health(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    return _show_health(request, _overseer(request, slug))


@require_http_methods(["GET", "POST"])
def check_now(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    if request.method == "GET":  # Back from signing in.
        return _to_health(slug)
    who = _overseer(request, slug)
    try:
        report = audit_services.audit_now(
            actor_id=signed_in(request).pk, team_id=who.team.pk if who else None
        )
    except Busy as error:
        messages.error(request, str(error))
    else:
        for level, text in report_in_words(report):
            messages.add_message(request, level, text)
    return _to_health(slug)


@require_http_methods(["GET", "POST"])
def handle_finding(
    request: HttpRequest, finding_id: int, deed: str, slug: str | None = None
) -> HttpResponse:
    """Do it and show the page again; if refused, with the note that was typed."""
    if deed not in DEEDS:
        raise NotFound
    if request.method == "GET":  # Back from signing in.
        return _to_health(slug)
    who = _overseer(request, slug)
    if who and not health_selectors.is_of_team(finding_id=finding_id, team_id=who.team.pk):
        raise NotFound
    what, note = DEEDS[deed], request.POST.get("note", "")
    arguments = {"note": note} if what.takes_note else {}
    try:
        done = what.service(finding_id=finding_id, actor_id=signed_in(request).pk, **arguments)
    except InvalidInput as error:
        refused = Refused(finding_id=finding_id, note=note, error=str(error))
        return _show_health(request, who, refused=refused, status=error.status)
    except (InvalidTransition, Busy) as error:
        messages.error(request, str(error))
        if note:
            refused = Refused(finding_id=finding_id, note=note)
            return _show_health(request, who, refused=refused, status=error.status)
    else:
        gone = done is not None and done.action == Action.NOTHING
        messages.success(
            request, _("It was gone when looked at again.") if gone else str(what.done)
        )
    return _to_health(slug)


def _overseer(request: HttpRequest, slug: str | None) -> Viewer | None:
    """The administrator of the team. No team is all teams, for superusers: to anybody else that does not exist."""
    user = signed_in(request)
    if slug is None:
        if not user.is_superuser:
            raise NotFound
        return None
    who = viewer(user=user, slug=slug)
    if not who.is_admin:
        raise NotAllowed
    return who


def _to_health(slug: str | None) -> HttpResponseRedirect:
    return redirect(_health_address(slug))


def _health_address(slug: str | None) -> str:
    return reverse("health", kwargs={"slug": slug} if slug else {})


def _show_health(
    request: HttpRequest, who: Viewer | None, *, refused: Refused | None = None, status: int = 200
) -> HttpResponse:
    team_id = who.team.pk if who else None
    figures = health_selectors.figures(team_id=team_id)
    runs = health_selectors.audit_runs(team_id=team_id, now=figures.now)
    size = health_selectors.OPEN
    found = health_selectors.open_findings(team_id=team_id, before=_before(request), limit=size + 1)
    return render(
        request,
        "reminders/health.html",
        {
            "viewer": who,
            "here": _health_address(who.team.slug if who else None),
            "figures": figures,
            "broker": health_selectors.broker_state(team_id=team_id),
            "runs": runs,
            "chart": health_selectors.chart(runs),
            "findings": found[:size],
            "older": found[size - 1].id if len(found) > size else None,
            "closed": health_selectors.closed_findings(team_id=team_id),
            "refused": refused,
            # Without its finding on the page, a note has no form to be kept in.
            "stranded": refused is not None
            and all(row.id != refused.finding_id for row in found[:size]),
        },
        status=status,
    )
