"""Errors as RFC 9457 problem documents, in one place, whatever raised them. Never an HTML page, never a traceback."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import structlog
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.encoding import force_str
from django.utils.translation import gettext, gettext_lazy
from django.views import defaults
from rest_framework import exceptions
from rest_framework.response import Response

from helpdesk.errors import DomainError, InvalidInput, NotAllowed, NotFound

log = structlog.get_logger(__name__)

MEDIA_TYPE: Final = "application/problem+json"
PREFIX: Final = "/api/"


class PayloadTooLarge(exceptions.APIException):
    status_code = 413
    default_detail = gettext_lazy("The body is too large.")


# DRF's own refusals by their class; the codes are ours and never change.
_CODES: Final[dict[type[Exception], str]] = {
    exceptions.ParseError: "not_json",
    exceptions.NotAuthenticated: "not_authenticated",
    exceptions.AuthenticationFailed: "not_authenticated",
    exceptions.MethodNotAllowed: "method_not_allowed",
    exceptions.NotAcceptable: "not_acceptable",
    exceptions.UnsupportedMediaType: "unsupported_media_type",
    exceptions.Throttled: "too_many_requests",
    PayloadTooLarge: "payload_too_large",
}


def document(
    status: int, code: str, detail: str, more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The members of a problem. `code` becomes its `type`; `more` are members of its own."""
    return {
        "type": f"urn:helpdesk:{code.replace('_', '-')}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **(more or {}),
    }


def handle(error: Exception, context: Mapping[str, Any]) -> Response:
    """DRF's exception handler. What nobody expected is logged and answered with 500."""
    headers: dict[str, str] = {}
    match error:
        case InvalidInput():
            fields = {name: [str(text)] for name, text in error.data["errors"].items()}
            body = document(error.status, error.code, str(error), {"errors": fields})
        case DomainError():
            body = document(error.status, error.code, str(error), error.data)
            if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
                headers["Retry-After"] = "1"
        case exceptions.ValidationError():
            body = document(
                400, InvalidInput.code, str(InvalidInput()), {"errors": _by_field(error.detail)}
            )
        case Http404() | exceptions.NotFound():
            body = document(404, NotFound.code, str(NotFound()))
        case PermissionDenied() | exceptions.PermissionDenied():
            body = document(403, NotAllowed.code, str(NotAllowed()))
        case exceptions.APIException():
            code = _CODES.get(type(error), "error")
            body = document(error.status_code, code, force_str(error.detail))
            if challenge := getattr(error, "auth_header", None):
                headers["WWW-Authenticate"] = challenge
            if wait := getattr(error, "wait", None):
                headers["Retry-After"] = str(int(wait) + 1)
        case RequestDataTooBig():
            body = document(413, "payload_too_large", str(PayloadTooLarge.default_detail))
        case SuspiciousOperation():
            body = document(400, "bad_request", gettext("This request makes no sense."))
        case _:
            log.error("api.error", exc_info=error, view=type(context["view"]).__name__)
            body = document(500, "server_error", gettext("Something went wrong on our side."))
    return Response(body, status=body["status"], headers=headers, content_type=MEDIA_TYPE)


def _by_field(detail: Any, name: str = "") -> dict[str, list[str]]:
    """DRF's nested errors as one list of messages for each field; of an element: "field.0"."""
    if isinstance(detail, Mapping):
        found: dict[str, list[str]] = {}
        for key, inner in detail.items():
            path = f"{name}.{key}" if name else str(key)
            found |= _by_field(inner, "body" if path == "non_field_errors" else path)
        return found
    if isinstance(detail, list):
        return {name or "body": [force_str(each) for each in detail]}
    return {name or "body": [force_str(detail)]}


# --- What never reaches a view ------------------------------------------------------------------
def _plain(status: int, code: str, detail: str) -> HttpResponse:
    return JsonResponse(document(status, code, detail), status=status, content_type=MEDIA_TYPE)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """For programs a problem, for browsers Django's page; so are the others."""
    if request.path.startswith(PREFIX):
        return _plain(400, "bad_request", gettext("This request makes no sense."))
    return defaults.bad_request(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    if request.path.startswith(PREFIX):
        return _plain(500, "server_error", gettext("Something went wrong on our side."))
    return defaults.server_error(request)
