"""Django admin over rows that services own: to look at, and to act on by calling the services."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext

from helpdesk.errors import DomainError


class ReadOnlyAdmin(admin.ModelAdmin):
    """Rows to look at. Nobody adds, changes or deletes them here, not even a superuser."""

    # Counting millions of rows to say "1 of 3,000,000" is not worth the wait.
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_act_permission(self, request: HttpRequest) -> bool:
        """For `@admin.action(permissions=["act"])`: superusers, who act as administrators of every team."""
        return bool(request.user.is_superuser)


class ServiceFormMixin:
    """For add and change forms whose `save_model` calls a service.

    Django wraps these views in a transaction; our services open their own, outermost, so that what
    they report as done is committed.
    """

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        inner: Callable[..., HttpResponse] = self._changeform_view  # type: ignore[attr-defined]
        return inner(request, object_id, form_url, extra_context)


def act_on_each(
    request: HttpRequest, rows: QuerySet[Any], act: Callable[[Any], object], done: str
) -> None:
    """Call the service for each row. What it refuses is said for that row; the others go on.

    `done` has a place for the number of rows it worked for, `%(count)d`.
    """
    count = 0
    for row in rows.order_by("pk"):
        try:
            act(row)
        except DomainError as refusal:
            messages.warning(request, f"{row}: {refusal}")
        else:
            count += 1
    if count:
        messages.success(request, gettext(done) % {"count": count})
