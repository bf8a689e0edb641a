"""Finished tasks whose claim to be finished does not hold, and what was sent without a claim."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from reminders import evidence
from reminders.audit.checks.queue import UNFINISHED
from reminders.audit.registry import SLACK, Check, Found, check, in_future
from reminders.states import Severity, SkipReason, Subject

_FINISHED: Final = """
    task.status AS "task.status", task.run AS "task.run", task.created_at AS "task.created_at",
    task.started_at AS "task.started_at", task.finished_at AS "task.finished_at"
"""


def _ids(column: str, path: str) -> str:
    """SQL for the ids at a path of a JSON column; whatever is not a possible id is passed over, not an error."""
    return (
        f"ARRAY(SELECT id::bigint FROM jsonb_path_query({column}, '{path} ? (@ >= 1 && @ < 9e18)')"
        " AS id)"
    )


@dataclass(frozen=True, slots=True)
class _Event:
    id: int
    ticket_id: int
    kind: str
    version: int
    reminder_revision: int
    created_at: datetime

    @property
    def pk(self) -> int:
        return self.id


@dataclass(frozen=True, slots=True)
class _Notice:
    id: int
    ticket_id: int
    user_id: int
    reminder_revision: int
    why: str
    due_at: datetime
    created_at: datetime


@check
class Unproven(Check):
    """Marked complete is not complete: the evidence is read, its rows are read, its checksum is computed again."""

    code = "unproven"
    title = _("Completed without proof")
    meaning = _(
        "The task says it is completed, but its evidence is missing, or the rows it names say something else than when it was written. Somebody changed rows by hand, or a bug did. Whether the reminder was sent is in the ticket's history."
    )
    subject = Subject.TASK
    severity = Severity.ERROR
    stored = True
    query = f"""
        SELECT task.id AS subject, task.team_id AS team, task.finished_at AS since,
               task.ticket_id, task.reminder_revision, task.evidence,
               task.status AS "task.status", task.finished_at AS "task.finished_at",
               event.id AS event_id, event.ticket_id AS event_ticket_id, event.kind AS event_kind,
               event.version AS event_version,
               event.reminder_revision AS event_reminder_revision,
               event.created_at AS event_created_at, notice.*
        FROM reminders_task AS task
        LEFT JOIN tickets_ticketevent AS event
               ON event.id = ANY({_ids("task.evidence", "$.event")})
        CROSS JOIN LATERAL (
            SELECT array_agg(notice.id ORDER BY notice.id) AS notice_ids,
                   array_agg(notice.ticket_id ORDER BY notice.id) AS notice_tickets,
                   array_agg(notice.user_id ORDER BY notice.id) AS notice_users,
                   array_agg(notice.reminder_revision ORDER BY notice.id) AS notice_revisions,
                   array_agg(notice.why ORDER BY notice.id) AS notice_whys,
                   array_agg(notice.due_at ORDER BY notice.id) AS notice_dues,
                   array_agg(notice.created_at ORDER BY notice.id) AS notice_created
            FROM notifications_remindernotification AS notice
            WHERE notice.id = ANY({_ids("task.evidence", "$.notifications[*]")})
        ) AS notice
        WHERE {{scope}} AND task.status = 'COMPLETED'
    """

    def judge(self, row: Mapping[str, Any]) -> Found | None:
        problem, computed = _problem(row)
        if not problem:
            return None
        return Found(
            subject_id=row["subject"],
            team_id=row["team"],
            since=row["since"],
            evidence={
                "problem": problem,
                "task.status": row["task.status"],
                "task.finished_at": row["task.finished_at"],
                "task.reminder_revision": row["reminder_revision"],
                "task.evidence": row["evidence"],
                "event.id": row["event_id"],
                "event.version": row["event_version"],
                "notice.id": row["notice_ids"] or [],
                "computed.checksum": computed,
            },
        )


def _problem(row: Mapping[str, Any]) -> tuple[str, str | None]:
    """What is wrong with the proof, if anything, and the checksum computed from the rows."""
    proof = row["evidence"]
    match proof.get("outcome") if isinstance(proof, dict) else None:
        case "fired" if row["event_id"] is None:
            return "its event does not exist", None
        case "fired":
            event = _Event(*(row[f"event_{name}"] for name in _Event.__slots__))
            is_own = (event.ticket_id, event.reminder_revision) == (
                row["ticket_id"],
                row["reminder_revision"],
            )
            computed = evidence.firing_checksum(event, list(_notices(row)))
        case "skipped" if proof.get("reason") in SkipReason.values:
            named = (proof.get("task"), proof.get("ticket"), proof.get("planned_revision"))
            is_own = named == (row["subject"], row["ticket_id"], row["reminder_revision"])
            computed = evidence.skip_checksum(proof)
        case _:
            return "no evidence", None
    if not is_own:
        return "evidence of another reminder", computed
    return ("" if proof.get("checksum") == computed else "the checksum differs"), computed


def _notices(row: Mapping[str, Any]) -> Iterable[_Notice]:
    columns = ("ids", "tickets", "users", "revisions", "whys", "dues", "created")
    return map(_Notice, *(row[f"notice_{name}"] or () for name in columns))


@check
class ImpossibleTimes(Check):
    """Times that cannot be: completed before it was created, started after it ended, anything in the future."""

    code = "impossible_times"
    title = _("Dates that cannot be")
    meaning = _(
        "The task ended before it was created, started after it ended, or something happened in the future. A script wrote these dates, or the database's clock was moved."
    )
    subject = Subject.TASK
    severity = Severity.WARNING
    live = UNFINISHED
    stored = True
    # Two clock readings: a claim may slip in after the time of a cancellation was read.
    query = f"""
        SELECT task.id AS subject, task.team_id AS team,
               coalesce(task.finished_at, task.started_at, task.created_at) AS since,
               task.due_at AS "task.due_at", task.dispatched_at AS "task.dispatched_at", {_FINISHED}
        FROM reminders_task AS task
        WHERE {{scope}}
          AND (task.finished_at < task.created_at
               OR task.started_at < task.created_at
               OR task.started_at > task.finished_at + {SLACK}
               OR {in_future("task.created_at")} OR {in_future("task.started_at")}
               OR {in_future("task.finished_at")} OR {in_future("task.dispatched_at")})
    """


@check
class CompletedTwice(Check):
    """Completed is final, so the history of a task has one such line. Four within three seconds mean four callers.

    What the audit completed again is told apart by its cause: that is a repair, and has its own finding.
    """

    code = "completed_twice"
    title = _("Completed more than once")
    meaning = _(
        "The history of the task has several completions. Something writes past the one function that moves tasks; the times and runs below say how often and how close together."
    )
    subject = Subject.TASK
    severity = Severity.ERROR
    stored = True
    query = """
        SELECT task.id AS subject, task.team_id AS team, max(step.at) AS since,
               task.status AS "task.status",
               array_agg(step.id ORDER BY step.id) AS "transition.id",
               array_agg(step.at ORDER BY step.id) AS "transition.at",
               array_agg(step.run ORDER BY step.id) AS "transition.run",
               array_agg(step.cause ORDER BY step.id) AS "transition.cause"
        FROM reminders_task AS task
        JOIN reminders_tasktransition AS step
          ON step.task_id = task.id AND step.to_status = 'COMPLETED'
         AND step.cause IN ('FIRED', 'SKIPPED')
        WHERE {scope}
        GROUP BY task.id HAVING count(*) > 1
    """


@check
class ReachedNobody(Check):
    """Sent, to nobody. Silence is never an answer."""

    code = "reached_nobody"
    title = _("A reminder that reached nobody")
    meaning = _(
        "At the due time nobody in the team was responsible: the assignee was no longer staff, or the team had no administrator with an active account. Assign the ticket, and look after it."
    )
    subject = Subject.TASK
    severity = Severity.WARNING
    stored = True
    query = """
        SELECT task.id AS subject, task.team_id AS team, task.finished_at AS since,
               task.ticket_id AS "task.ticket_id", task.finished_at AS "task.finished_at",
               task.evidence -> 'planned' AS "task.evidence.planned",
               task.evidence -> 'event' AS "task.evidence.event"
        FROM reminders_task AS task
        WHERE {scope} AND task.status = 'COMPLETED' AND task.evidence ->> 'outcome' = 'fired'
          AND task.evidence -> 'planned' = '[]'
    """


_PLANNED: Final = """
    LEFT JOIN LATERAL (
        SELECT event.id, event.created_at, ARRAY(
            SELECT who::bigint FROM jsonb_path_query(event.data, '$.recipients[*].user') AS who
            WHERE jsonb_typeof(who) = 'number' ORDER BY 1) AS recipients
        FROM tickets_ticketevent AS event
        WHERE event.kind = 'TIMEOUT_REMINDED' AND event.ticket_id = notice.ticket_id
          AND event.reminder_revision = notice.reminder_revision
    ) AS event ON true
"""
_NOTICE: Final = """
    notice.ticket_id AS "notice.ticket_id", notice.user_id AS "notice.user_id",
    notice.reminder_revision AS "notice.reminder_revision", notice.why AS "notice.why",
    notice.created_at AS "notice.created_at"
"""


@check
class NoticeWithoutEvent(Check):
    """Somebody was told, and the history does not know of it."""

    code = "notice_without_event"
    title = _("A notice without its event")
    meaning = _(
        "Somebody has a notice in their bell for a reminder that the ticket's history does not mention. Notice and event are written together, so one of them was written or removed by other means."
    )
    subject = Subject.NOTICE
    severity = Severity.ERROR
    stored = True
    query = f"""
        SELECT notice.id AS subject, ticket.team_id AS team, notice.created_at AS since, {_NOTICE},
               event.id AS "event.id", ticket.number AS "ticket.number"
        FROM notifications_remindernotification AS notice
        JOIN tickets_ticket AS ticket ON ticket.id = notice.ticket_id
        {_PLANNED}
        WHERE {{scope}} AND event.id IS NULL
    """


@check
class WrongRecipient(Check):
    """A notice for somebody who was not on the team's staff then, or whom the reminder was not meant for."""

    code = "wrong_recipient"
    title = _("A notice for the wrong person")
    meaning = _(
        "The person was not on the staff of the ticket's team when the notice was made, or the reminder was meant for others. They may have read the title of a ticket that is not for them."
    )
    subject = Subject.NOTICE
    severity = Severity.ERROR
    stored = True
    query = f"""
        SELECT notice.id AS subject, ticket.team_id AS team, notice.created_at AS since, {_NOTICE},
               event.id AS "event.id", event.recipients AS "event.recipients",
               standing.role AS "membership.role", standing.at AS "membership.since",
               ticket.number AS "ticket.number"
        FROM notifications_remindernotification AS notice
        JOIN tickets_ticket AS ticket ON ticket.id = notice.ticket_id
        {_PLANNED}
        LEFT JOIN LATERAL (
            SELECT change.role, change.at FROM tickets_membershipchange AS change
            WHERE change.team_id = ticket.team_id AND change.user_id = notice.user_id
              AND change.at <= notice.created_at
            ORDER BY change.at DESC, change.id DESC LIMIT 1
        ) AS standing ON true
        WHERE {{scope}}
          AND (standing.role IS NULL OR standing.role = 'CUSTOMER'
               OR (notice.why = 'TEAM_ADMIN' AND standing.role <> 'ADMIN')
               OR notice.user_id <> ALL(event.recipients))
    """


@check
class EventWithoutNotices(Check):
    """The history says that people were told, and they were not."""

    code = "event_without_notices"
    title = _("A reminder without its notices")
    meaning = _(
        "The ticket's history says that these people were told, but they have no notice. Notice and event are written together, so the notice was removed by other means. Tell them."
    )
    subject = Subject.TICKET
    severity = Severity.ERROR
    stored = True
    query = """
        SELECT ticket.id AS subject, ticket.team_id AS team, min(event.created_at) AS since,
               ticket.number AS "ticket.number", array_agg(event.id ORDER BY event.id) AS "event.id",
               array_agg(event.reminder_revision ORDER BY event.id) AS "event.reminder_revision",
               array_agg(who.id ORDER BY event.id) AS "event.recipient"
        FROM tickets_ticket AS ticket
        JOIN tickets_ticketevent AS event
          ON event.ticket_id = ticket.id AND event.kind = 'TIMEOUT_REMINDED'
        CROSS JOIN LATERAL (
            SELECT who::bigint AS id FROM jsonb_path_query(event.data, '$.recipients[*].user') AS who
            WHERE jsonb_typeof(who) = 'number'
        ) AS who
        WHERE {scope} AND NOT EXISTS (
            SELECT FROM notifications_remindernotification AS notice
            WHERE notice.ticket_id = ticket.id AND notice.user_id = who.id
              AND notice.reminder_revision = event.reminder_revision)
        GROUP BY ticket.id
    """
