"""The task table with its history, and what the audit writes down. Imported only inside `reminders`: everybody else asks `reminders.selectors`.

The foreign keys have no reverse accessor, so that a ticket or a team cannot be used to reach and
change tasks from outside.
"""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from reminders.states import (
    ACTIVE,
    Action,
    Cause,
    Handling,
    Severity,
    Subject,
    TaskKind,
    TaskStatus,
    Trigger,
    Verdict,
)


class Task(models.Model):
    """One planned piece of work: for a reminder, "remind of this ticket, for this revision of the intent".

    `run` rises when the row is put back in the queue, so a message of an older run is recognised.
    `execution_id` is the lease: whoever holds it may finish the task, until `lease_expires_at`.
    """

    team = models.ForeignKey("tickets.Team", models.PROTECT, related_name="+", db_index=False)
    kind = models.CharField(max_length=16, choices=TaskKind.choices, default=TaskKind.REMINDER)
    ticket = models.ForeignKey("tickets.Ticket", models.PROTECT, related_name="+", db_index=False)
    reminder_revision = models.PositiveIntegerField()
    # Who asked for the work. Never decides who is notified.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False
    )
    run = models.PositiveIntegerField(default=1)
    status = models.CharField(
        _("status"), max_length=9, choices=TaskStatus.choices, default=TaskStatus.WAITING
    )
    due_at = models.DateTimeField(_("due"), null=True)
    # The next attempt: `due_at`, or later after a failure.
    available_at = models.DateTimeField(null=True)
    execution_id = models.UUIDField(null=True, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    last_error = models.TextField(_("last error"), blank=True)
    progress = models.PositiveSmallIntegerField(_("progress"), default=0)
    result_summary = models.TextField(_("result"), blank=True)
    evidence = models.JSONField(null=True, blank=True)
    dispatched_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("task")
        verbose_name_plural = _("tasks")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["ticket", "reminder_revision"],
                condition=Q(kind=TaskKind.REMINDER, status__in=ACTIVE),
                name="one_active_task_per_intent",
            ),
            models.CheckConstraint(
                condition=Q(status__in=TaskStatus.values), name="task_status_known"
            ),
            models.CheckConstraint(condition=Q(kind__in=TaskKind.values), name="task_kind_known"),
            models.CheckConstraint(condition=Q(progress__lte=100), name="task_progress_percent"),
            models.CheckConstraint(
                condition=Q(
                    status=TaskStatus.RUNNING,
                    execution_id__isnull=False,
                    lease_expires_at__isnull=False,
                )
                | (
                    ~Q(status=TaskStatus.RUNNING)
                    & Q(execution_id__isnull=True, lease_expires_at__isnull=True)
                ),
                name="task_lease_exactly_while_running",
            ),
            models.CheckConstraint(
                condition=Q(status=TaskStatus.COMPLETED, evidence__isnull=False)
                | (~Q(status=TaskStatus.COMPLETED) & Q(evidence__isnull=True)),
                name="task_evidence_exactly_when_completed",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=ACTIVE)
                | Q(due_at__isnull=False, available_at__isnull=False),
                name="task_due_while_active",
            ),
        ]
        indexes: ClassVar = [
            # outbox.dispatch_due(): what to publish next, in this very order.
            models.Index(
                fields=["available_at", "id"],
                condition=Q(status=TaskStatus.WAITING),
                name="task_to_dispatch",
            ),
            # recovery.recover_expired(): leases that have run out.
            models.Index(
                fields=["lease_expires_at"],
                condition=Q(status=TaskStatus.RUNNING),
                name="task_by_lease",
            ),
            # schedule.end_reminder() and the ticket page: the tasks of a ticket, newest first.
            models.Index(F("ticket"), F("id").desc(), name="task_by_ticket"),
            # The audit: what finished since it last looked. Health: lateness of recent reminders.
            models.Index(
                fields=["finished_at"],
                condition=Q(finished_at__isnull=False),
                name="task_by_finish",
            ),
            # Health: how many wait for a person.
            models.Index(
                fields=["team"], condition=Q(status=TaskStatus.FAILED), name="task_failed"
            ),
            # selectors.task_list(): a team's tasks, newest first.
            models.Index(F("team"), F("id").desc(), name="task_by_team"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk} run {self.run}"


class TaskTransition(models.Model):
    """Append-only history: every change of a task's status, run or lease, by whom, when and why."""

    task = models.ForeignKey(Task, models.PROTECT, related_name="transitions")
    run = models.PositiveIntegerField()
    execution_id = models.UUIDField(null=True)
    from_status = models.CharField(max_length=9, choices=TaskStatus.choices, null=True)  # noqa: DJ001  null: the task did not exist
    to_status = models.CharField(max_length=9, choices=TaskStatus.choices)
    cause = models.CharField(max_length=16, choices=Cause.choices)
    detail = models.TextField(blank=True)
    # Null when the system acted.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
    )
    at = models.DateTimeField()

    class Meta:
        verbose_name = _("task transition")
        verbose_name_plural = _("task transitions")
        ordering = ("id",)
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(to_status__in=TaskStatus.values), name="transition_status_known"
            ),
            models.CheckConstraint(
                condition=Q(cause__in=Cause.values), name="transition_cause_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task_id} {self.from_status} → {self.to_status} ({self.cause})"


class AuditRun(models.Model):
    """One look of the audit at the queue and what belongs to it. Without an end it was interrupted, or is under way.

    Runs after completed tasks are kept only if they found something: there may be one every few seconds.
    """

    trigger = models.CharField(_("trigger"), max_length=8, choices=Trigger.choices)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", db_index=False
    )
    # Null: all teams.
    team = models.ForeignKey(
        "tickets.Team", models.PROTECT, null=True, related_name="+", db_index=False
    )
    # Codes of the checks it was limited to; empty: all.
    codes = models.JSONField(default=list)
    # Every stored row, instead of what is active, recent and next in turn.
    full = models.BooleanField(default=False)
    started_at = models.DateTimeField(_("started"))
    finished_at = models.DateTimeField(_("finished"), null=True)
    duration_ms = models.PositiveIntegerField(_("duration in ms"), null=True)
    query_ms = models.PositiveIntegerField(_("in queries, ms"), null=True)
    found = models.PositiveIntegerField(_("found"), default=0)
    opened = models.PositiveIntegerField(_("new"), default=0)
    repaired = models.PositiveIntegerField(_("repaired"), default=0)
    failed = models.PositiveIntegerField(_("failed repairs"), default=0)
    # Checks that could not be carried out, with the error of each.
    errors = models.JSONField(default=dict)
    # What the broker held: messages by queue, and how many of those seen mean nothing any more.
    broker = models.JSONField(default=dict)
    # The last stored row of each kind that this run looked at; the next one goes on from there.
    cursors = models.JSONField(default=dict)

    class Meta:
        verbose_name = _("audit run")
        verbose_name_plural = _("audit runs")
        ordering = ("-id",)
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(trigger__in=Trigger.values), name="audit_trigger_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pk} ({self.trigger})"


class Finding(models.Model):
    """Something that cannot be, as the audit read it. One open row for each check and subject, however often it is seen."""

    code = models.CharField(_("check"), max_length=40)
    severity = models.CharField(_("severity"), max_length=7, choices=Severity.choices)
    verdict = models.CharField(_("verdict"), max_length=9, choices=Verdict.choices)
    subject_kind = models.CharField(_("subject"), max_length=6, choices=Subject.choices)
    subject_id = models.BigIntegerField()
    # Null: of no team, such as the broker.
    team = models.ForeignKey(
        "tickets.Team", models.PROTECT, null=True, related_name="+", db_index=False
    )
    # The values that were read, by "table.column"; and why they make the finding ambiguous.
    evidence = models.JSONField()
    doubts = models.JSONField(default=list)
    since = models.DateTimeField(_("since"))
    first_seen = models.DateTimeField(_("first seen"))
    last_seen = models.DateTimeField(_("last seen"))
    closed_at = models.DateTimeField(_("gone"), null=True)
    dwell = models.GeneratedField(
        expression=Coalesce(F("closed_at"), F("last_seen")) - F("since"),
        output_field=models.DurationField(),
        db_persist=True,
        verbose_name=_("dwell time"),
    )
    seen = models.PositiveIntegerField(_("seen"), default=1)
    # The run that saw it last, and the one that acted on it.
    run = models.ForeignKey(AuditRun, models.PROTECT, related_name="+", db_index=False)
    action = models.CharField(_("action"), max_length=9, choices=Action.choices, blank=True)
    action_detail = models.TextField(blank=True)
    acted_at = models.DateTimeField(null=True)
    acted_run = models.ForeignKey(
        AuditRun, models.PROTECT, null=True, related_name="+", db_index=False
    )
    handling = models.CharField(
        _("handling"), max_length=12, choices=Handling.choices, default=Handling.OPEN
    )
    handled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", db_index=False
    )
    handled_at = models.DateTimeField(null=True)
    note = models.TextField(_("note"), blank=True)

    class Meta:
        verbose_name = _("finding")
        verbose_name_plural = _("findings")
        ordering = ("-id",)
        constraints: ClassVar = [
            # The recorder counts on it: a finding that persists meets its own row.
            models.UniqueConstraint(
                fields=["code", "subject_kind", "subject_id"],
                condition=Q(closed_at__isnull=True),
                name="one_open_finding_per_subject",
            ),
            models.CheckConstraint(
                condition=Q(severity__in=Severity.values), name="finding_severity_known"
            ),
            models.CheckConstraint(
                condition=Q(verdict__in=Verdict.values), name="finding_verdict_known"
            ),
            models.CheckConstraint(
                condition=Q(subject_kind__in=Subject.values), name="finding_subject_known"
            ),
            models.CheckConstraint(
                condition=Q(action="", acted_at__isnull=True)
                | Q(action__in=Action.values, acted_at__isnull=False),
                name="finding_action_with_its_time",
            ),
            models.CheckConstraint(
                condition=Q(handling=Handling.OPEN, handled_at__isnull=True)
                | Q(
                    handling__in=[Handling.ACKNOWLEDGED, Handling.RESOLVED],
                    handled_at__isnull=False,
                ),
                name="finding_handling_with_its_time",
            ),
        ]
        indexes: ClassVar = [
            # The badge, the queue page and the subjects the audit looks at again.
            models.Index(
                fields=["team", "id"], condition=Q(closed_at__isnull=True), name="finding_open"
            ),
            # prune: closed long ago.
            models.Index(
                fields=["closed_at"],
                condition=Q(closed_at__isnull=False),
                name="finding_by_closing",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.code} {self.subject_kind} {self.subject_id}"
