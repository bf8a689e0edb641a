"""The task table and its history. Imported only inside `reminders`: everybody else asks `reminders.selectors`.

The foreign keys have no reverse accessor, so that a ticket or a team cannot be used to reach and
change tasks from outside.
"""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from reminders.states import ACTIVE, Cause, TaskKind, TaskStatus


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
