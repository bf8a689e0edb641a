"""What each event of a ticket's history says, in the reader's language and zone. Rows keep the ids and values."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from helpdesk.durations import lateness
from tickets.models import TicketEvent
from tickets.states import EventKind, Priority


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One line of the history. `who` is empty when the system acted."""

    id: int
    at: datetime
    who: str
    kind: str
    text: str
    note: str


def history_entry(event: TicketEvent, *, for_staff: bool) -> HistoryEntry:
    """The event as shown to staff, or to the customer, who does not read the team's notes."""
    kind = EventKind(event.kind)
    return HistoryEntry(
        id=event.pk,
        at=event.created_at,
        who=event.actor_name if event.actor_id else "",
        kind=kind.value,
        text=str(_PLAIN[kind]) if kind in _PLAIN else _TEXTS[kind](event.data),
        note=event.reason if for_staff and kind != EventKind.REMINDER_SCHEDULED else "",
    )


def _moment(iso: str) -> str:
    return date_format(timezone.localtime(datetime.fromisoformat(iso)), "DATETIME_FORMAT")


def _edited(data: dict[str, Any]) -> str:
    parts = []
    if title := data.get("title"):
        parts.append(gettext("Title changed to “%(title)s”") % {"title": title["to"]})
    if "description" in data:
        parts.append(gettext("Description changed"))
    if priority := data.get("priority"):
        parts.append(
            gettext("Priority changed from %(before)s to %(after)s")
            % {
                "before": Priority(priority["from"]).label,
                "after": Priority(priority["to"]).label,
            }
        )
    return " · ".join(parts)


def _assigned(data: dict[str, Any]) -> str:
    return gettext("Assigned to %(name)s") % {"name": data["to"]["name"]}


def _unassigned(data: dict[str, Any]) -> str:
    name = data["from"]["name"]
    match data.get("because"):
        case "removed":
            return gettext("No longer assigned: %(name)s left the team") % {"name": name}
        case "demoted":
            return gettext("No longer assigned: %(name)s is no longer staff") % {"name": name}
        case "deactivated":
            return gettext("No longer assigned: the account of %(name)s was closed") % {
                "name": name
            }
        case _:
            return gettext("No longer assigned to %(name)s") % {"name": name}


def _reminder_scheduled(data: dict[str, Any]) -> str:
    if data["due_at"] is None:
        return gettext("Reminder cancelled")
    text = gettext("Reminder set for %(when)s") % {"when": _moment(data["due_at"])}
    return f"{text} · {data['note']}" if data["note"] else text


def _reminded(data: dict[str, Any]) -> str:
    names = ", ".join(person["name"] for person in data["recipients"])
    late = lateness(timedelta(milliseconds=data["late_ms"]))
    if not names:
        return gettext("Reminder sent to nobody (%(late)s): nobody was responsible") % {
            "late": late
        }
    return gettext("Reminder sent to %(names)s (%(late)s)") % {"names": names, "late": late}


def _blocked(data: dict[str, Any]) -> str:
    blocker = data["blocker"]
    return gettext("Now waits for #%(number)d %(title)s") % {
        "number": blocker["number"],
        "title": blocker["title"],
    }


def _unblocked(data: dict[str, Any]) -> str:
    blocker = data["blocker"]
    return gettext("No longer waits for #%(number)d %(title)s") % {
        "number": blocker["number"],
        "title": blocker["title"],
    }


# Kinds that say the same whatever their data.
_PLAIN: Final[dict[EventKind, Promise]] = {
    EventKind.CREATED: gettext_lazy("Ticket opened"),
    EventKind.REPLIED: gettext_lazy("Replied"),
    EventKind.NOTED: gettext_lazy("Added an internal note"),
    EventKind.STARTED: gettext_lazy("Work started"),
    EventKind.RESOLVED: gettext_lazy("Resolved"),
    EventKind.CLOSED: gettext_lazy("Closed"),
    EventKind.REOPENED: gettext_lazy("Reopened"),
}
_TEXTS: Final[dict[EventKind, Callable[[dict[str, Any]], str]]] = {
    EventKind.EDITED: _edited,
    EventKind.ASSIGNED: _assigned,
    EventKind.UNASSIGNED: _unassigned,
    EventKind.BLOCKED: _blocked,
    EventKind.UNBLOCKED: _unblocked,
    EventKind.REMINDER_SCHEDULED: _reminder_scheduled,
    EventKind.TIMEOUT_REMINDED: _reminded,
}
