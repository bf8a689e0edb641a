"""Addresses of the bell."""

from django.urls import path

from notifications import api, views

urlpatterns = [
    path("notifications/", views.inbox, name="notifications"),
    path("notifications/read-all/", views.read_all, name="read-all-notifications"),
    path("notifications/<row:notice_id>/read/", views.read, name="read-notification"),
]

# Below /api/v1/.
api_patterns = [
    path("notifications/", api.NotificationsView.as_view()),
    path("notifications/<row:notice_id>/read/", api.ReadView.as_view()),
    path("notifications/read-all/", api.ReadAllView.as_view()),
]
