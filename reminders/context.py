"""What every page's navigation shows of the audit."""

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from helpdesk.pages import signed_in
from reminders.audit import selectors


def findings(request: HttpRequest) -> dict[str, object]:
    """`open_ambiguous`: findings that wait for somebody to decide. One indexed count, once a page asks.

    base.html asks for staff only, so that it costs nobody else a query.
    """
    if not request.user.is_authenticated:
        return {}
    user = signed_in(request)
    return {"open_ambiguous": SimpleLazyObject(lambda: selectors.open_ambiguous(user))}
