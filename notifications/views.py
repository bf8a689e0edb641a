"""The bell: one's own notices."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from helpdesk.clock import database_now
from helpdesk.pages import signed_in
from notifications import selectors, services


@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    entries = selectors.inbox(user_id=signed_in(request).pk)
    return render(request, "notifications/inbox.html", {"entries": entries, "now": database_now()})


@require_http_methods(["GET", "POST"])
def read(request: HttpRequest, notice_id: int) -> HttpResponse:
    if request.method == "POST":  # GET is back from signing in.
        services.mark_read(user_id=signed_in(request).pk, notice_id=notice_id)
    return redirect("notifications")


@require_http_methods(["GET", "POST"])
def read_all(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":  # GET is back from signing in.
        services.mark_all_read(user_id=signed_in(request).pk)
    return redirect("notifications")
