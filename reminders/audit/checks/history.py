"""Tickets whose state is not what their history says."""

from typing import Final

from django.utils.translation import gettext_lazy as _

from reminders.audit.registry import Check, check, in_future
from reminders.states import Severity, Subject
from tickets.states import TRANSITIONS, EventKind, Status

# Which status an event leaves behind; the same table that the services go by.
_STATUS_AFTER: Final = {EventKind.CREATED: Status.OPEN} | {
    kind: to for (_from, to), kind in TRANSITIONS.items()
}
_STEPS: Final = ", ".join(f"'{kind.value}'" for kind in _STATUS_AFTER)
_EXPECTED: Final = " ".join(
    f"WHEN '{kind.value}' THEN '{status.value}'" for kind, status in _STATUS_AFTER.items()
)


def _last(column: str, condition: str = "true") -> str:
    """SQL: the value in the event of the highest version for which the condition holds."""
    return f"(array_agg({column} ORDER BY event.version DESC) FILTER (WHERE {condition}))[1]"


@check
class Unexplained(Check):
    """Status, version, revision or dates that the ticket's own events do not lead to."""

    code = "unexplained"
    title = _("A ticket that its history does not explain")
    meaning = _(
        "Every change of a ticket leaves an event, one for each version. Here the ticket says something else than its events add up to, so something changed it without a trace, or removed one. Compare the values below."
    )
    subject = Subject.TICKET
    severity = Severity.ERROR
    stored = True
    query = f"""
        SELECT ticket.id AS subject, ticket.team_id AS team,
               greatest(ticket.updated_at, history.at) AS since, ticket.number AS "ticket.number",
               ticket.status AS "ticket.status", expected.status AS "event.status",
               ticket.version AS "ticket.version", history.version AS "event.version",
               history.count AS "event.count",
               ticket.reminder_revision AS "ticket.reminder_revision",
               history.revision AS "event.reminder_revision",
               ticket.resolved_at AS "ticket.resolved_at", expected.resolved_at AS "event.resolved_at",
               ticket.closed_at AS "ticket.closed_at", expected.closed_at AS "event.closed_at",
               ticket.updated_at AS "ticket.updated_at", history.at AS "event.created_at"
        FROM (
            SELECT ticket.id, count(event.id) AS count, max(event.version) AS version,
                   {_last("event.reminder_revision")} AS revision,
                   {_last("event.created_at")} AS at,
                   {_last("event.kind", f"event.kind IN ({_STEPS})")} AS step,
                   {_last("event.created_at", "event.kind = 'RESOLVED'")} AS resolved_at,
                   {_last("event.created_at", "event.kind = 'CLOSED'")} AS closed_at
            FROM tickets_ticket AS ticket
            LEFT JOIN tickets_ticketevent AS event ON event.ticket_id = ticket.id
            WHERE {{scope}} GROUP BY ticket.id
        ) AS history
        JOIN tickets_ticket AS ticket ON ticket.id = history.id
        CROSS JOIN LATERAL (
            SELECT CASE history.step {_EXPECTED} END AS status,
                   CASE WHEN history.step IN ('RESOLVED', 'CLOSED') THEN history.resolved_at END
                       AS resolved_at,
                   CASE WHEN history.step = 'CLOSED' THEN history.closed_at END AS closed_at
        ) AS expected
        WHERE history.count <> ticket.version + 1
           OR history.version IS DISTINCT FROM ticket.version
           OR history.revision IS DISTINCT FROM ticket.reminder_revision
           OR history.at IS DISTINCT FROM ticket.updated_at
           OR expected.status IS DISTINCT FROM ticket.status
           OR expected.resolved_at IS DISTINCT FROM ticket.resolved_at
           OR expected.closed_at IS DISTINCT FROM ticket.closed_at
           OR {in_future("ticket.created_at")} OR {in_future("ticket.updated_at")}
    """


@check
class FinishedWhileBlocked(Check):
    """Resolved or closed although a ticket it waits for was open, and still is."""

    code = "finished_while_blocked"
    title = _("Finished while a ticket that blocks it is open")
    meaning = _(
        "A ticket cannot be resolved or closed while it waits for an open one, so something went around that rule. Finish the blocker, or reopen this one. A blocker that was reopened afterwards is no finding."
    )
    subject = Subject.TICKET
    severity = Severity.WARNING
    stored = True
    query = """
        SELECT ticket.id AS subject, ticket.team_id AS team, finished.at AS since,
               ticket.number AS "ticket.number", ticket.status AS "ticket.status",
               finished.at AS "ticket.finished_at",
               array_agg(blocker.number ORDER BY blocker.number) AS "blocker.number",
               array_agg(blocker.status ORDER BY blocker.number) AS "blocker.status",
               array_agg(reopened.at ORDER BY blocker.number) AS "blocker.reopened_at"
        FROM tickets_ticket AS ticket
        CROSS JOIN LATERAL (SELECT coalesce(ticket.closed_at, ticket.resolved_at) AS at) AS finished
        JOIN tickets_ticketlink AS link ON link.ticket_id = ticket.id
        JOIN tickets_ticket AS blocker ON blocker.id = link.blocker_id
        CROSS JOIN LATERAL (
            SELECT max(event.created_at) AS at FROM tickets_ticketevent AS event
            WHERE event.ticket_id = blocker.id AND event.kind = 'REOPENED'
        ) AS reopened
        WHERE {scope} AND ticket.status IN ('RESOLVED', 'CLOSED')
          AND blocker.status IN ('OPEN', 'IN_PROGRESS')
          AND (reopened.at IS NULL OR reopened.at <= finished.at)
        GROUP BY ticket.id, finished.at
    """
