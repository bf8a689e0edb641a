"""Tasks, their history and what the audit found, in Django admin."""

import json
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from helpdesk.errors import Busy
from helpdesk.pages import signed_in
from helpdesk.service_admin import ReadOnlyAdmin, act_on_each
from reminders import services
from reminders.audit import services as audit_services
from reminders.audit.wording import report_in_words
from reminders.models import AuditRun, Finding, Task, TaskTransition


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


@admin.register(AuditRun)
class AuditRunAdmin(ReadOnlyAdmin):
    """With a button that makes one."""

    list_display = (
        "id",
        "trigger",
        "team",
        "actor",
        "started_at",
        "duration_ms",
        "found",
        "opened",
        "repaired",
        "failed",
    )
    list_filter = ("trigger", "full", "team")
    list_select_related = ("team", "actor")
    search_fields = ("=id",)

    def get_urls(self) -> list[URLPattern]:
        here = path(
            "audit-now/", self.admin_site.admin_view(self.audit_now), name="reminders_audit_now"
        )
        return [here, *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        may = {"may_audit": self.has_act_permission(request)}
        return super().changelist_view(request, {**(extra_context or {}), **may})

    def audit_now(self, request: HttpRequest) -> HttpResponse:
        if not self.has_act_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            try:
                report = audit_services.audit_now(actor_id=signed_in(request).pk)
            except Busy as busy:
                messages.error(request, str(busy))
            else:
                for level, text in report_in_words(report):
                    messages.add_message(request, level, text)
        return redirect("admin:reminders_auditrun_changelist")


@admin.register(Finding)
class FindingAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "code",
        "severity",
        "verdict",
        "subject_kind",
        "subject_id",
        "team",
        "since",
        "dwell",
        "seen",
        "action",
        "handling",
        "closed_at",
    )
    list_filter = (
        ("closed_at", admin.EmptyFieldListFilter),
        "severity",
        "verdict",
        "handling",
        "action",
        "code",
        "team",
    )
    list_select_related = ("team",)
    search_fields = ("=id", "=subject_id", "code")
    exclude = ("evidence",)
    readonly_fields = ("read",)
    actions = ("acknowledge", "repair")

    @admin.display(description=_("evidence"))
    def read(self, finding: Finding) -> SafeString:
        text = json.dumps(finding.evidence, ensure_ascii=False, indent=2)
        return format_html("<pre>{}</pre>", text)

    @admin.action(description=_("Acknowledge"), permissions=["act"])
    def acknowledge(self, request: HttpRequest, queryset: QuerySet[Finding]) -> None:
        act_on_each(
            request,
            queryset,
            lambda finding: audit_services.acknowledge_finding(
                finding_id=finding.pk, actor_id=signed_in(request).pk
            ),
            gettext_noop("%(count)d findings were acknowledged."),
        )

    @admin.action(description=_("Repair"), permissions=["act"])
    def repair(self, request: HttpRequest, queryset: QuerySet[Finding]) -> None:
        act_on_each(
            request,
            queryset,
            lambda finding: audit_services.repair_finding(
                finding_id=finding.pk, actor_id=signed_in(request).pk
            ),
            gettext_noop("%(count)d findings were repaired."),
        )
