"""Finished tasks whose claim to be finished does not hold, and what was sent without a claim."""

from typing import Final

from django.utils.translation import gettext_lazy as _

from reminders.audit.checks.queue import UNFINISHED
from reminders.audit.registry import SLACK, Check, check, in_future
from reminders.states import Severity, SkipReason, Subject

_REASONS: Final = ", ".join(f"'{reason.value}'" for reason in SkipReason)
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


def _iso(moment: str) -> str:
    """SQL for what Python's `isoformat()` makes of it."""
    return (
        f"replace(to_char({moment} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"+00:00\"'),"
        " '.000000', '')"
    )


def _checksum(text: str) -> str:
    return f"'sha256:' || encode(sha256(convert_to({text}, 'UTF8')), 'hex')"


# The texts that `reminders.evidence` computes its checksums over, written by the database: thousands of
# rows need not come here for that, and two authors who agree are worth more than one. Values that
# need quoting cannot be in them, by the constraints of their tables.
_FIRED: Final = f"""
    format('{{{{"event":[%s,%s,"%s",%s,%s,"%s"],"notices":[%s]}}}}',
           event.id, event.ticket_id, event.kind, event.version, event.reminder_revision,
           {_iso("event.created_at")}, notice.texts)
"""
_NOTICE_TEXT: Final = f"""
    format('[%s,%s,%s,%s,"%s","%s","%s"]', notice.id, notice.ticket_id, notice.user_id,
           notice.reminder_revision, notice.why, {_iso("notice.due_at")}, {_iso("notice.created_at")})
"""
_SKIPPED: Final = """
    format('{{"outcome":"skipped","planned_revision":%s,"reason":"%s","task":%s,"ticket":%s,'
           '"ticket_revision":%s,"ticket_version":%s}}',
           task.evidence -> 'planned_revision', task.evidence ->> 'reason', task.evidence -> 'task',
           task.evidence -> 'ticket', task.evidence -> 'ticket_revision',
           task.evidence -> 'ticket_version')
"""


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
               claim.problem AS "proof.problem", computed.checksum AS "proof.checksum",
               task.evidence AS "task.evidence", task.status AS "task.status",
               task.reminder_revision AS "task.reminder_revision",
               task.finished_at AS "task.finished_at", event.id AS "event.id",
               event.version AS "event.version", notice.ids AS "notice.id"
        FROM reminders_task AS task
        LEFT JOIN tickets_ticketevent AS event
               ON event.id = ANY({_ids("task.evidence", "$.event")})
        CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(notice.id ORDER BY notice.id), ARRAY[]::bigint[]) AS ids,
                   string_agg({_NOTICE_TEXT}, ',' ORDER BY notice.id) AS texts
            FROM notifications_remindernotification AS notice
            WHERE notice.id = ANY({_ids("task.evidence", "$.notifications[*]")})
        ) AS notice
        CROSS JOIN LATERAL (
            SELECT CASE task.evidence ->> 'outcome'
                   WHEN 'fired' THEN {_checksum(_FIRED)}
                   WHEN 'skipped' THEN {_checksum(_SKIPPED)} END AS checksum
        ) AS computed
        CROSS JOIN LATERAL (
            SELECT CASE
                   WHEN computed.checksum IS NULL
                        OR (task.evidence ->> 'outcome' = 'skipped'
                            AND task.evidence ->> 'reason' NOT IN ({_REASONS}))
                       THEN 'no evidence'
                   WHEN task.evidence ->> 'outcome' = 'fired' AND event.id IS NULL
                       THEN 'its event does not exist'
                   WHEN task.evidence ->> 'outcome' = 'fired'
                        AND (event.ticket_id, event.reminder_revision)
                            <> (task.ticket_id, task.reminder_revision)
                        OR task.evidence ->> 'outcome' = 'skipped'
                        AND (task.evidence -> 'task', task.evidence -> 'ticket',
                             task.evidence -> 'planned_revision')
                            <> (to_jsonb(task.id), to_jsonb(task.ticket_id),
                                to_jsonb(task.reminder_revision))
                       THEN 'evidence of another reminder'
                   WHEN computed.checksum IS DISTINCT FROM task.evidence ->> 'checksum'
                       THEN 'the checksum differs' END AS problem
        ) AS claim
        WHERE {{scope}} AND task.status = 'COMPLETED' AND claim.problem IS NOT NULL
    """


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
