"""What every page's bell shows."""

from django.http import HttpRequest

from notifications import selectors


def bell(request: HttpRequest) -> dict[str, int]:
    """`unread`: the person's unread notices. One indexed count; none for strangers."""
    if not request.user.is_authenticated:
        return {}
    return {"unread": selectors.unread_count(user_id=request.user.pk)}
