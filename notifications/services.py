"""Writing notices: delivered by the processor, read by their owner, handled when their ticket is."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from helpdesk.clock import database_now
from helpdesk.errors import NotFound
from notifications.models import ReminderNotification
from notifications.selectors import Notice, notices_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One reminder to be delivered to one person. `why` is a value of `notifications.models.Why`."""

    ticket_id: int
    reminder_revision: int
    user_id: int
    why: str
    note: str
    due_at: datetime
    late_ms: int


def deliver(deliveries: Sequence[Delivery], *, now: datetime) -> dict[int, list[Notice]]:
    """Store the notices; returns all that exist for these intents, by ticket. Call inside the firing's transaction.

    A person who has a notice for the intent already keeps that one: a conflict is a normal outcome.
    """
    if not deliveries:
        return {}
    ReminderNotification.objects.bulk_create(
        [
            ReminderNotification(
                ticket_id=each.ticket_id,
                reminder_revision=each.reminder_revision,
                user_id=each.user_id,
                why=each.why,
                note=each.note,
                due_at=each.due_at,
                late_ms=each.late_ms,
                created_at=now,
            )
            for each in deliveries
        ],
        ignore_conflicts=True,
        batch_size=5_000,
    )
    delivered: dict[int, list[Notice]] = defaultdict(list)
    for notice in notices_for({each.ticket_id: each.reminder_revision for each in deliveries}):
        delivered[notice.ticket_id].append(notice)
    return dict(delivered)


def mark_handled(*, ticket_id: int, now: datetime) -> int:
    """The ticket is resolved or closed: its unread notices ask for nothing any more. Returns how many."""
    return ReminderNotification.objects.filter(
        ticket=ticket_id, read_at__isnull=True, handled_at__isnull=True
    ).update(handled_at=now)


def mark_read(*, user_id: int, notice_id: int) -> None:
    """Mark one of the person's own notices as read; again is fine. Raises `NotFound` for anybody else's."""
    own = ReminderNotification.objects.filter(pk=notice_id, user=user_id)
    if not own.exists():
        raise NotFound
    own.filter(read_at__isnull=True).update(read_at=database_now())


def mark_all_read(*, user_id: int) -> int:
    """Mark all of the person's unread notices as read. Returns how many."""
    return ReminderNotification.objects.filter(
        user=user_id, read_at__isnull=True, handled_at__isnull=True
    ).update(read_at=database_now())
