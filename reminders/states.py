"""The states of a task and the table of what may follow what; code, docs and tests read the same table."""

from typing import Final

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class TaskKind(TextChoices):
    REMINDER = "REMINDER", _("Reminder")


class TaskStatus(TextChoices):
    WAITING = "WAITING", _("Waiting")
    RUNNING = "RUNNING", _("Running")
    COMPLETED = "COMPLETED", _("Completed")
    FAILED = "FAILED", _("Failed")


ACTIVE: Final = (TaskStatus.WAITING, TaskStatus.RUNNING)


class Cause(TextChoices):
    """Why a task changed its status, its run or its lease."""

    PLANNED = "PLANNED", _("Planned")
    CLAIMED = "CLAIMED", _("Claimed by a worker")
    TAKEN_OVER = "TAKEN_OVER", _("Taken over by another worker")
    NOT_DUE = "NOT_DUE", _("Called before it was due")
    FIRED = "FIRED", _("Reminder sent")
    SKIPPED = "SKIPPED", _("Skipped")
    ATTEMPT_FAILED = "ATTEMPT_FAILED", _("Attempt failed")
    GAVE_UP = "GAVE_UP", _("Gave up after the last attempt")
    LEASE_EXPIRED = "LEASE_EXPIRED", _("Lease expired")
    RETRIED = "RETRIED", _("Retried by a person")


class SkipReason(TextChoices):
    """Why a task ended without reminding anybody."""

    CANCELLED = "CANCELLED", _("the reminder was cancelled")
    REPLACED = "REPLACED", _("the reminder was replaced by a newer one")
    RESOLVED = "RESOLVED", _("the ticket was resolved")
    CLOSED = "CLOSED", _("the ticket was closed")
    TICKET_MISSING = "TICKET_MISSING", _("the ticket no longer exists in this team")
    ALREADY_SENT = "ALREADY_SENT", _("this reminder had already been sent")


W, R, C, F = TaskStatus.WAITING, TaskStatus.RUNNING, TaskStatus.COMPLETED, TaskStatus.FAILED

# (from, to, cause); None is "did not exist". Whatever is not here is a bug.
TRANSITIONS: Final[frozenset[tuple[TaskStatus | None, TaskStatus, Cause]]] = frozenset(
    {
        (None, W, Cause.PLANNED),
        (W, R, Cause.CLAIMED),
        (R, R, Cause.TAKEN_OVER),
        (R, W, Cause.NOT_DUE),
        (R, C, Cause.FIRED),
        (R, C, Cause.SKIPPED),
        (W, C, Cause.SKIPPED),
        (R, W, Cause.ATTEMPT_FAILED),
        (R, F, Cause.GAVE_UP),
        (R, W, Cause.LEASE_EXPIRED),
        (R, F, Cause.LEASE_EXPIRED),
        (F, W, Cause.RETRIED),
    }
)
