"""Statuses, priorities and roles, and the tables that say what may follow what."""

from datetime import timedelta
from typing import Final

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class Status(TextChoices):
    OPEN = "OPEN", _("Open")
    IN_PROGRESS = "IN_PROGRESS", _("In progress")
    RESOLVED = "RESOLVED", _("Resolved")
    CLOSED = "CLOSED", _("Closed")


class Priority(TextChoices):
    URGENT = "URGENT", _("Urgent")
    HIGH = "HIGH", _("High")
    NORMAL = "NORMAL", _("Normal")
    LOW = "LOW", _("Low")


class Role(TextChoices):
    ADMIN = "ADMIN", _("Administrator")
    AGENT = "AGENT", _("Agent")
    CUSTOMER = "CUSTOMER", _("Customer")


class EventKind(TextChoices):
    CREATED = "CREATED", _("Created")
    EDITED = "EDITED", _("Edited")
    REPLIED = "REPLIED", _("Replied")
    NOTED = "NOTED", _("Internal note")
    ASSIGNED = "ASSIGNED", _("Assigned")
    UNASSIGNED = "UNASSIGNED", _("Unassigned")
    STARTED = "STARTED", _("Started")
    RESOLVED = "RESOLVED", _("Resolved")
    CLOSED = "CLOSED", _("Closed")
    REOPENED = "REOPENED", _("Reopened")
    BLOCKED = "BLOCKED", _("Blocker added")
    UNBLOCKED = "UNBLOCKED", _("Blocker removed")
    REMINDER_SCHEDULED = "REMINDER_SCHEDULED", _("Reminder changed")
    TIMEOUT_REMINDED = "TIMEOUT_REMINDED", _("Reminder sent")


STAFF: Final = frozenset({Role.ADMIN, Role.AGENT})

# A reminder belongs to a ticket somebody still has to act on.
ACTIVE: Final = frozenset({Status.OPEN, Status.IN_PROGRESS})

# (from, to) → the event that records the step. What is not listed is not possible; CLOSED is final.
TRANSITIONS: Final[dict[tuple[Status, Status], EventKind]] = {
    (Status.OPEN, Status.IN_PROGRESS): EventKind.STARTED,
    (Status.IN_PROGRESS, Status.RESOLVED): EventKind.RESOLVED,
    (Status.RESOLVED, Status.CLOSED): EventKind.CLOSED,
    (Status.RESOLVED, Status.OPEN): EventKind.REOPENED,
}

# Steps that somebody will ask about later: they need a note.
NOTE_REQUIRED: Final = frozenset({EventKind.RESOLVED, EventKind.REOPENED})

# Steps that wait for the ticket's blockers. Closing too: a blocker may have been reopened since.
FINISHING: Final = frozenset({EventKind.RESOLVED, EventKind.CLOSED})

# Event kinds a customer may see. Everything about reminders, blockers and internal notes is for staff.
CUSTOMER_VISIBLE: Final = frozenset(
    {
        EventKind.CREATED,
        EventKind.EDITED,
        EventKind.REPLIED,
        EventKind.STARTED,
        EventKind.RESOLVED,
        EventKind.CLOSED,
        EventKind.REOPENED,
    }
)

# Plain hours from one `now`, nights and holidays included.
DEFAULT_DEADLINE: Final[dict[Priority, timedelta]] = {
    Priority.URGENT: timedelta(hours=1),
    Priority.HIGH: timedelta(hours=4),
    Priority.NORMAL: timedelta(hours=24),
    Priority.LOW: timedelta(hours=48),
}

REMINDER_MINUTES: Final = range(1, 10081)
