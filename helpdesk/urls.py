"""All addresses."""

from django.contrib import admin
from django.urls import include, path, register_converter

from helpdesk.converters import RowConverter

register_converter(RowConverter, "row")

urlpatterns = [
    path("", include("tickets.urls")),
    path("", include("reminders.urls")),
    path("", include("notifications.urls")),
    path("api/", include("helpdesk.api.urls")),
    path("admin/", admin.site.urls),
]

# For what goes wrong outside of any view: programs get a problem document, browsers a page.
handler400 = "helpdesk.api.problems.bad_request"
handler500 = "helpdesk.api.problems.server_error"
