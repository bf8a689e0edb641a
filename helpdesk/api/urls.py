"""Addresses of the API. Whatever begins with /api/ and is none of these is a problem, not a page."""

from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularSwaggerView

from helpdesk.api.views import DocumentView, NothingHere
from notifications.urls import api_patterns as notifications
from reminders.urls import api_patterns as reminders
from tickets.urls import api_patterns as tickets

urlpatterns = [
    path("v1/", include([*tickets, *reminders, *notifications])),
    path("schema/", DocumentView.as_view(), name="api-schema"),
    path(
        "docs/",
        SpectacularSwaggerView.as_view(url_name="api-schema", throttle_classes=[]),
        name="api-docs",
    ),
    re_path("", NothingHere.as_view()),
]
