"""What proves that a task is completed. Completed is a claim to check, not a flag to trust.

The evidence names the rows behind the claim and carries a checksum over what they say, so anybody
can read those rows again and compute it anew. What people do later (read a notice, handle it) is not
part of it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from django.utils.translation import gettext, ngettext, override

from reminders.models import Task
from reminders.states import SkipReason


class EventRow(Protocol):
    """The columns of a ticket event that the checksum covers."""

    @property
    def pk(self) -> int: ...
    @property
    def ticket_id(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def reminder_revision(self) -> int: ...
    @property
    def created_at(self) -> datetime: ...


class NoticeRow(Protocol):
    """The columns of a notice that the checksum covers."""

    @property
    def id(self) -> int: ...
    @property
    def ticket_id(self) -> int: ...
    @property
    def user_id(self) -> int: ...
    @property
    def reminder_revision(self) -> int: ...
    @property
    def why(self) -> str: ...
    @property
    def due_at(self) -> datetime: ...
    @property
    def created_at(self) -> datetime: ...


def of_firing(
    *,
    event: EventRow,
    notices: Sequence[NoticeRow],
    planned: Sequence[int],
    created: int,
    due_at: datetime,
    late_ms: int,
) -> dict[str, Any]:
    """The evidence that a reminder was sent. `planned` are the user ids it was meant for."""
    return {
        "outcome": "fired",
        "event": event.pk,
        "notifications": [notice.id for notice in notices],
        "ticket_version": event.version,
        "planned": sorted(planned),
        "created": created,
        "due_at": _instant(due_at),
        "late_ms": late_ms,
        "checksum": firing_checksum(event, notices),
    }


def firing_checksum(event: EventRow, notices: Sequence[NoticeRow]) -> str:
    """The checksum over the event and the notices as they are in the database."""
    return _checksum(
        {
            "event": [
                event.pk,
                event.ticket_id,
                str(event.kind),
                event.version,
                event.reminder_revision,
                _instant(event.created_at),
            ],
            "notices": [
                [
                    notice.id,
                    notice.ticket_id,
                    notice.user_id,
                    notice.reminder_revision,
                    str(notice.why),
                    _instant(notice.due_at),
                    _instant(notice.created_at),
                ]
                for notice in sorted(notices, key=lambda notice: notice.id)
            ],
        }
    )


def of_skip(
    *, task: Task, reason: SkipReason, ticket_version: int | None, ticket_revision: int | None
) -> dict[str, Any]:
    """The evidence that there was nothing to send: what the task was planned for, and what was found."""
    found = {
        "outcome": "skipped",
        "reason": reason.value,
        "task": task.pk,
        "ticket": task.ticket_id,
        "planned_revision": task.reminder_revision,
        "ticket_revision": ticket_revision,
        "ticket_version": ticket_version,
    }
    return {**found, "checksum": skip_checksum(found)}


def skip_checksum(proof: Mapping[str, Any]) -> str:
    """The checksum over what a skip found; there are no other rows behind it."""
    return _checksum({name: value for name, value in proof.items() if name != "checksum"})


def summarise(evidence: Mapping[str, Any] | None) -> str:
    """The outcome in one sentence, in the language of whoever reads it. Empty while there is none."""
    if not evidence:
        return ""
    if evidence["outcome"] == "skipped":
        return gettext("Skipped: %(reason)s.") % {"reason": SkipReason(evidence["reason"]).label}
    count = len(evidence["planned"])
    if not count:
        return gettext("Sent to 0 recipients: nobody in the team was responsible.")
    return ngettext("Sent to %(count)d person.", "Sent to %(count)d people.", count) % {
        "count": count
    }


def stored_summary(evidence: Mapping[str, Any]) -> str:
    """The summary kept in the row, for programs and the log: always English."""
    with override("en"):
        return summarise(evidence)


def _instant(value: datetime) -> str:
    return value.astimezone(UTC).isoformat()


def _checksum(content: Any) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"
