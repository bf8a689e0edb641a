"""What every page's team switch shows."""

from django.http import HttpRequest

from tickets import selectors
from tickets.states import STAFF


def teams(request: HttpRequest) -> dict[str, object]:
    """`my_teams`: the person's memberships with their teams; `is_agent`: on the staff of one of them. One query."""
    if not request.user.is_authenticated:
        return {}
    mine = selectors.memberships(user_id=request.user.pk)
    return {
        "my_teams": mine,
        "is_agent": request.user.is_superuser or any(each.role in STAFF for each in mine),
    }
