"""All addresses."""

from django.contrib import admin
from django.urls import include, path, register_converter

from helpdesk.converters import RowConverter

register_converter(RowConverter, "row")

urlpatterns = [
    path("", include("tickets.urls")),
    path("", include("reminders.urls")),
    path("", include("notifications.urls")),
    path("admin/", admin.site.urls),
]
