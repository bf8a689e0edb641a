"""The endpoints of the queue: its tasks, and what the audit found."""

from collections.abc import Callable
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from helpdesk.api import pages
from helpdesk.api.schema import operation
from helpdesk.errors import NotFound
from reminders import selectors, services
from reminders.audit import selectors as audit_selectors
from reminders.audit import services as audit_services
from reminders.serializers import (
    AcknowledgeInput,
    AuditInput,
    AuditSerializer,
    FindingPage,
    FindingQuery,
    FindingSerializer,
    ResolveInput,
    TaskDetailSerializer,
    TaskPage,
    TaskQuery,
    TaskSerializer,
)
from tickets.api.shared import TeamView


class TasksView(TeamView):
    @operation(
        "list_tasks",
        "Tasks of the team",
        tag="queue",
        query=TaskQuery,
        answers=TaskPage,
        refuses=[403, 404],
        description="For staff. Newest first.",
    )
    def get(self, request: Request, team: str) -> Response:
        self.require_staff()
        query = self.query(TaskQuery)
        found = selectors.task_list(
            team_id=self.viewer.team.pk,
            status=query.get("status", ""),
            before=pages.before(query.get("cursor")),
            limit=query["limit"] + 1,
        )
        return pages.answer_by_id(request, found, query["limit"], TaskSerializer)


class OneTaskView(TeamView):
    """An endpoint that answers with a task."""

    def shown(self, task_id: int) -> Response:
        task = selectors.task_detail(team_id=self.viewer.team.pk, task_id=task_id)
        if task is None:
            raise NotFound
        return Response(TaskDetailSerializer(task).data)


class TaskView(OneTaskView):
    @operation(
        "get_task",
        "A task with its history and evidence",
        tag="queue",
        answers=TaskDetailSerializer,
        refuses=[403, 404],
        description="For staff.",
    )
    def get(self, request: Request, team: str, task_id: int) -> Response:
        self.require_staff()
        return self.shown(task_id)


class RetryView(OneTaskView):
    @operation(
        "retry_task",
        "Put a failed task back in the queue",
        tag="queue",
        answers=TaskDetailSerializer,
        refuses=[403, 404, 409, 429],
        description="For staff. With the next run and all its attempts.",
    )
    def post(self, request: Request, team: str, task_id: int) -> Response:
        self.require_staff()
        services.retry_task(**self.common, task_id=task_id)
        return self.shown(task_id)


class FindingsView(TeamView):
    @operation(
        "list_findings",
        "What the audit found",
        tag="queue",
        query=FindingQuery,
        answers=FindingPage,
        refuses=[403, 404],
        description="For administrators. Newest first.",
    )
    def get(self, request: Request, team: str) -> Response:
        self.require_admin()
        query = self.query(FindingQuery)
        found = audit_selectors.findings(
            team_id=self.viewer.team.pk,
            is_open=query["open"],
            before=pages.before(query.get("cursor")),
            limit=query["limit"] + 1,
        )
        return pages.answer_by_id(request, found, query["limit"], FindingSerializer)


class FindingView(TeamView):
    """What a person does about a finding; answers with it."""

    def handle(self, service: Callable[..., Any], finding_id: int, **arguments: str) -> Response:
        # A finding of another team does not exist here, whatever the service would say.
        if not audit_selectors.is_of_team(finding_id=finding_id, team_id=self.viewer.team.pk):
            raise NotFound
        service(finding_id=finding_id, actor_id=self.user.pk, **arguments)
        found = audit_selectors.finding(team_id=self.viewer.team.pk, finding_id=finding_id)
        if found is None:  # Forgotten meanwhile.
            raise NotFound
        return Response(FindingSerializer(found).data)


class AcknowledgeView(FindingView):
    @operation(
        "acknowledge_finding",
        "Say that somebody looks after it",
        tag="queue",
        takes=AcknowledgeInput,
        answers=FindingSerializer,
        refuses=[403, 404, 409],
        description="For administrators.",
    )
    def post(self, request: Request, team: str, finding_id: int) -> Response:
        self.require_admin()
        values = self.body(AcknowledgeInput)
        return self.handle(audit_services.acknowledge_finding, finding_id, **values)


class ResolveView(FindingView):
    @operation(
        "resolve_finding",
        "Say that it is dealt with",
        tag="queue",
        takes=ResolveInput,
        answers=FindingSerializer,
        refuses=[403, 404, 409],
        description="For administrators. It asks for nobody any more, and is not opened anew while it is seen.",
    )
    def post(self, request: Request, team: str, finding_id: int) -> Response:
        self.require_admin()
        values = self.body(ResolveInput)
        return self.handle(audit_services.resolve_finding, finding_id, **values)


class RepairView(FindingView):
    @operation(
        "repair_finding",
        "Have it repaired although it is in doubt",
        tag="queue",
        answers=FindingSerializer,
        refuses=[403, 404, 409, 429],
        description="For administrators. The repair looks again first; if the world has moved, it does nothing.",
    )
    def post(self, request: Request, team: str, finding_id: int) -> Response:
        self.require_admin()
        return self.handle(audit_services.repair_finding, finding_id)


class AuditView(TeamView):
    @operation(
        "run_audit",
        "Have the audit look now",
        tag="queue",
        takes=AuditInput,
        answers=AuditSerializer,
        refuses=[403, 404],
        description="For administrators. What is certain is mended. 503 while another audit runs.",
    )
    def post(self, request: Request, team: str) -> Response:
        self.require_admin()
        values = self.body(AuditInput)
        report = audit_services.audit_now(**self.common, full=values["full"])
        return Response(AuditSerializer(report).data)
