"""Messages that mean nothing any more and that nobody comes for. Gate 1 makes them harmless; they still tell something."""

from django.utils.translation import gettext_lazy as _

from reminders.audit.registry import Check, check
from reminders.states import Severity, Subject


@check
class StaleMessages(Check):
    """The broker holds messages for tasks that were finished, or went on to another run, long ago.

    A few after a cancellation are normal and are only counted (see the run); here are those whose time
    has passed by far: no worker takes them, or one that died still holds them.
    """

    code = "stale_messages"
    title = _("Messages that nobody comes for")
    meaning = _(
        "The broker holds messages for tasks that ended or changed their run more than ten minutes ago. They do no harm, but a running worker would have taken them: check that workers run and read the queue. Messages of a worker that was killed come back after the broker's visibility timeout."
    )
    subject = Subject.BROKER
    severity = Severity.INFO
    live = "true"
    # `hints` are what was read from the broker just before.
    query = """
        SELECT 0 AS subject, NULL::bigint AS team, min(ended.at) AS since,
               count(*) AS "broker.messages", min(hint.task) AS "broker.first_task",
               max(hint.task) AS "broker.last_task"
        FROM unnest(%(hint_tasks)s::bigint[], %(hint_runs)s::bigint[]) AS hint(task, run)
        JOIN reminders_task AS task ON task.id = hint.task
        CROSS JOIN LATERAL (
            SELECT CASE WHEN task.status IN ('COMPLETED', 'FAILED') THEN task.finished_at
                        WHEN task.run <> hint.run THEN task.available_at END AS at) AS ended
        WHERE {scope} AND ended.at < %(now)s - interval '10 minutes'
        HAVING count(*) > 0
    """
