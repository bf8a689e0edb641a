"""Reading notices: always one's own, and only of tickets one may still open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet

from notifications.models import ReminderNotification, Why
from tickets.states import STAFF

INBOX_SIZE = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A delivered notice: the columns that never change."""

    id: int
    ticket_id: int
    user_id: int
    reminder_revision: int
    why: str
    due_at: datetime
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxEntry:
    """A notice as its owner sees it."""

    id: int
    team_name: str
    team_slug: str
    ticket_number: int
    ticket_title: str
    why: str
    why_code: str
    note: str
    due_at: datetime
    late: timedelta
    created_at: datetime
    read_at: datetime | None
    handled_at: datetime | None

    @property
    def is_unread(self) -> bool:
        return self.read_at is None and self.handled_at is None


def _visible(user_id: int) -> QuerySet[ReminderNotification]:
    """The person's notices of tickets they may still open: somebody who left a team reads nothing of it any more."""
    return ReminderNotification.objects.filter(user=user_id).filter(
        Q(
            ticket__team__memberships__user=F("user"),
            ticket__team__memberships__role__in=STAFF,
        )
        | Q(user__is_superuser=True)
    )


def unread_count(*, user_id: int) -> int:
    """How many notices the person has neither read nor had handled for them."""
    return _visible(user_id).filter(read_at__isnull=True, handled_at__isnull=True).count()


def inbox(
    *, user_id: int, after: tuple[datetime, int] | None = None, limit: int = INBOX_SIZE
) -> list[InboxEntry]:
    """The person's latest notices, newest first; `after` is when the last one of the page before came, and its id. One query."""
    rows = _visible(user_id)
    if after is not None:
        at, last = after
        rows = rows.filter(Q(created_at__lt=at) | Q(created_at=at, pk__lt=last))
    return [_entry(row) for row in _newest_first(rows)[:limit]]


def inbox_entry(*, user_id: int, notice_id: int) -> InboxEntry | None:
    """One of the person's notices, None if it is not theirs. One query."""
    row = _newest_first(_visible(user_id).filter(pk=notice_id)).first()
    return _entry(row) if row else None


def _newest_first(rows: QuerySet[ReminderNotification]) -> QuerySet[ReminderNotification]:
    return rows.select_related("ticket__team").order_by("-created_at", "-id")


def _entry(row: ReminderNotification) -> InboxEntry:
    return InboxEntry(
        id=row.pk,
        team_name=row.ticket.team.name,
        team_slug=row.ticket.team.slug,
        ticket_number=row.ticket.number,
        ticket_title=row.ticket.title,
        why=str(Why(row.why).label),
        why_code=row.why,
        note=row.note,
        due_at=row.due_at,
        late=timedelta(milliseconds=row.late_ms),
        created_at=row.created_at,
        read_at=row.read_at,
        handled_at=row.handled_at,
    )


def notices(*, ids: Sequence[int]) -> list[Notice]:
    """These notices as they are in the database, for whoever checks evidence."""
    return _as_notices(ReminderNotification.objects.filter(pk__in=ids))


def notices_for(revisions: Mapping[int, int]) -> list[Notice]:
    """All notices of these tickets for the given revision of each. One query."""
    rows = ReminderNotification.objects.filter(
        ticket__in=revisions, reminder_revision__in=set(revisions.values())
    )
    return [
        notice
        for notice in _as_notices(rows)
        if notice.reminder_revision == revisions[notice.ticket_id]
    ]


def _as_notices(rows: QuerySet[ReminderNotification]) -> list[Notice]:
    return [Notice(**row) for row in rows.order_by("id").values(*Notice.__slots__)]
