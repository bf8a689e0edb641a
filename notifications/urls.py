"""Addresses of the bell."""

from django.urls import path

from notifications import views

urlpatterns = [
    path("notifications/", views.inbox, name="notifications"),
    path("notifications/read-all/", views.read_all, name="read-all-notifications"),
    path("notifications/<row:notice_id>/read/", views.read, name="read-notification"),
]
