"""What every page's team switch shows."""

from django.http import HttpRequest

from tickets import selectors


def teams(request: HttpRequest) -> dict[str, object]:
    """`my_teams`: the person's memberships with their teams. Evaluated only where it is shown."""
    if not request.user.is_authenticated:
        return {}
    return {"my_teams": lambda: selectors.memberships(user_id=request.user.pk)}
