"""What all pages share: domain errors become HTTP in one place, and times are shown in the person's zone."""

import zoneinfo
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from helpdesk.errors import DomainError

if TYPE_CHECKING:
    from tickets.models import User

GetResponse = Callable[[HttpRequest], HttpResponse]


def signed_in(request: HttpRequest) -> "User":
    """The person behind the request, for pages that nobody reaches without signing in."""
    return cast("User", request.user)


class DomainErrorMiddleware:
    """Turns an error no view handled into a page with its status: 404 and 403 mostly.

    A page with a form handles the errors a person can do something about itself, and keeps what they
    typed; see `tickets.views`.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, DomainError):
            return None
        return render(request, "error.html", {"error": error}, status=error.status)


class PersonTimeZoneMiddleware:
    """Times are shown in the signed-in person's own zone; they are stored in UTC."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.user.is_authenticated:
            return self.get_response(request)
        with timezone.override(zoneinfo.ZoneInfo(request.user.time_zone)):
            return self.get_response(request)
