"""The bell: one's own notices."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from helpdesk.clock import database_now
from helpdesk.pages import signed_in
from notifications import selectors, services


@require_GET
def inbox(request: HttpRequest) -> HttpResponse:
    entries = selectors.inbox(user_id=signed_in(request).pk)
    return render(request, "notifications/inbox.html", {"entries": entries, "now": database_now()})


@require_POST
def read(request: HttpRequest, notice_id: int) -> HttpResponse:
    services.mark_read(user_id=signed_in(request).pk, notice_id=notice_id)
    return redirect("notifications")


@require_POST
def read_all(request: HttpRequest) -> HttpResponse:
    services.mark_all_read(user_id=signed_in(request).pk)
    return redirect("notifications")
