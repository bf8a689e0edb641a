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
    # By the audit; apart from the others, so that the history tells a repair from a second completion.
    PROVEN = "PROVEN", _("Completed from its proof")
    ENDED = "ENDED", _("Ended by the audit")


class SkipReason(TextChoices):
    """Why a task ended without reminding anybody."""

    CANCELLED = "CANCELLED", _("the reminder was cancelled")
    REPLACED = "REPLACED", _("the reminder was replaced by a newer one")
    RESOLVED = "RESOLVED", _("the ticket was resolved")
    CLOSED = "CLOSED", _("the ticket was closed")
    TICKET_MISSING = "TICKET_MISSING", _("the ticket no longer exists in this team")
    ALREADY_SENT = "ALREADY_SENT", _("this reminder had already been sent")
    DUPLICATE = "DUPLICATE", _("another task stands for the same reminder")


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
        (W, C, Cause.PROVEN),
        (R, C, Cause.PROVEN),
        (W, C, Cause.ENDED),
        (R, C, Cause.ENDED),
    }
)


# --- The audit ----------------------------------------------------------------------------------
class Trigger(TextChoices):
    """What made an audit run."""

    BEAT = "BEAT", _("Period")
    BOUNDARY = "BOUNDARY", _("Completed tasks")
    COMMAND = "COMMAND", _("Command")
    PERSON = "PERSON", _("Person")


class Subject(TextChoices):
    """What a finding is about."""

    TASK = "TASK", _("Task")
    TICKET = "TICKET", _("Ticket")
    NOTICE = "NOTICE", _("Notice")
    BROKER = "BROKER", _("Broker")


class Severity(TextChoices):
    INFO = "INFO", _("Note")
    WARNING = "WARNING", _("Warning")
    ERROR = "ERROR", _("Error")


class Verdict(TextChoices):
    """Certain findings are repaired; ambiguous ones are recorded and wait for a person."""

    CERTAIN = "CERTAIN", _("Certain")
    AMBIGUOUS = "AMBIGUOUS", _("Ambiguous")


class Action(TextChoices):
    """What was done about a finding."""

    COMPLETED = "COMPLETED", _("Completed from its proof")
    ENDED = "ENDED", _("Ended as skipped")
    PLANNED = "PLANNED", _("Reminder planned")
    REQUEUED = "REQUEUED", _("Put back in the queue")
    PUBLISHED = "PUBLISHED", _("Published again")
    NOTHING = "NOTHING", _("Nothing: it was gone when looked at again")
    REFUSED = "REFUSED", _("Nothing: in doubt when looked at again")
    FAILED = "FAILED", _("The repair failed")


class Handling(TextChoices):
    """What people have said about a finding. Resolved: dealt with, or to be lived with."""

    OPEN = "OPEN", _("Open")
    ACKNOWLEDGED = "ACKNOWLEDGED", _("Acknowledged")
    RESOLVED = "RESOLVED", _("Resolved")
