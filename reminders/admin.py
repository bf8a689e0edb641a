"""Tasks and their history in Django admin."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from helpdesk.pages import signed_in
from helpdesk.service_admin import ReadOnlyAdmin, act_on_each
from reminders import services
from reminders.models import Task, TaskTransition


@admin.register(Task)
class TaskAdmin(ReadOnlyAdmin):
    list_display = ("id", "ticket", "team", "status", "run", "attempts", "due_at")
    list_filter = ("status", "kind", "team")
    list_select_related = ("team", "ticket")
    search_fields = ("=id", "=ticket__number")
    actions = ("retry",)

    @admin.action(description=_("Retry failed tasks"), permissions=["act"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        act_on_each(
            request,
            queryset,
            lambda task: services.retry_task(
                team_id=task.team_id, task_id=task.pk, actor_id=signed_in(request).pk
            ),
            gettext_noop("%(count)d tasks are back in the queue."),
        )


@admin.register(TaskTransition)
class TaskTransitionAdmin(ReadOnlyAdmin):
    list_display = ("task", "run", "from_status", "to_status", "cause", "detail", "actor", "at")
    list_filter = ("cause", "to_status")
    list_select_related = ("task", "actor")
    search_fields = ("=task__id",)
