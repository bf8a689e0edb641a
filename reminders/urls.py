"""Addresses of the background tasks and of the queue's health; without a team the latter is of all teams."""

from django.urls import path

from reminders import api, views

urlpatterns = [
    path("t/<slug:slug>/tasks/", views.task_list, name="tasks"),
    path("t/<slug:slug>/tasks/<row:task_id>/", views.task_page, name="task"),
    path("t/<slug:slug>/tasks/<row:task_id>/retry/", views.retry, name="retry-task"),
    path("t/<slug:slug>/health/", views.health, name="health"),
    path("t/<slug:slug>/health/check/", views.check_now, name="check-now"),
    path(
        "t/<slug:slug>/health/<row:finding_id>/<slug:deed>/",
        views.handle_finding,
        name="handle-finding",
    ),
    path("health/", views.health, name="health"),
    path("health/check/", views.check_now, name="check-now"),
    path("health/<row:finding_id>/<slug:deed>/", views.handle_finding, name="handle-finding"),
]

# Below /api/v1/.
api_patterns = [
    path("teams/<slug:team>/tasks/", api.TasksView.as_view()),
    path("teams/<slug:team>/tasks/<row:task_id>/", api.TaskView.as_view()),
    path("teams/<slug:team>/tasks/<row:task_id>/retry/", api.RetryView.as_view()),
    path("teams/<slug:team>/findings/", api.FindingsView.as_view()),
    path("teams/<slug:team>/findings/<row:finding_id>/acknowledge/", api.AcknowledgeView.as_view()),
    path("teams/<slug:team>/findings/<row:finding_id>/resolve/", api.ResolveView.as_view()),
    path("teams/<slug:team>/findings/<row:finding_id>/repair/", api.RepairView.as_view()),
    path("teams/<slug:team>/audit/", api.AuditView.as_view()),
]
