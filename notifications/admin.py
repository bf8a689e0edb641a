"""Notices in Django admin."""

from django.contrib import admin

from helpdesk.service_admin import ReadOnlyAdmin
from notifications.models import ReminderNotification


@admin.register(ReminderNotification)
class ReminderNotificationAdmin(ReadOnlyAdmin):
    list_display = ("ticket", "user", "why", "due_at", "late_ms", "created_at", "read_at")
    list_filter = ("why",)
    list_select_related = ("ticket", "user")
    search_fields = ("=ticket__number", "user__username")
