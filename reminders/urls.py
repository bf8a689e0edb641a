"""Addresses of the background tasks."""

from django.urls import path

from reminders import views

urlpatterns = [
    path("t/<slug:slug>/tasks/", views.task_list, name="tasks"),
    path("t/<slug:slug>/tasks/<row:task_id>/", views.task_page, name="task"),
    path("t/<slug:slug>/tasks/<row:task_id>/retry/", views.retry, name="retry-task"),
]
