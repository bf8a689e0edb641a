"""Forgetting what is old: task history, audit runs, closed findings, receipts. In small transactions, so that nothing waits for them."""

from datetime import datetime
from typing import Final

import structlog
from django.conf import settings
from django.db import connection, transaction

from helpdesk.clock import database_now
from tickets import receipts

log = structlog.get_logger("reminders.audit")

BATCH = 1_000

# Rows were written in the order of their ids, near enough: the walk ends at the first part without
# anything old. What an unfinished task went through stays. SKIP LOCKED: nobody is waited for.
_TRANSITIONS: Final = """
WITH part AS (
    SELECT step.id, step.at, step.at < %(before)s AND task.status IN ('COMPLETED', 'FAILED') AS old
    FROM reminders_tasktransition AS step JOIN reminders_task AS task ON task.id = step.task_id
    WHERE step.id > %(after)s ORDER BY step.id LIMIT %(batch)s
), gone AS (
    DELETE FROM reminders_tasktransition WHERE id IN (
        SELECT step.id FROM reminders_tasktransition AS step JOIN part ON part.id = step.id
        WHERE part.old FOR UPDATE OF step SKIP LOCKED)
    RETURNING id
)
SELECT (SELECT count(*) FROM gone), max(id), count(*) FILTER (WHERE at < %(before)s) FROM part
"""

_FINDINGS: Final = """
WITH part AS (
    SELECT id FROM reminders_finding WHERE closed_at < %(before)s
    ORDER BY closed_at LIMIT %(batch)s FOR UPDATE SKIP LOCKED
), gone AS (DELETE FROM reminders_finding WHERE id IN (SELECT id FROM part) RETURNING id)
SELECT count(*), NULL, count(*) FROM gone
"""

# A run that a finding still names stays with it.
_RUNS: Final = """
WITH part AS (
    SELECT run.id, run.started_at AS at, run.id NOT IN (
        SELECT run_id FROM reminders_finding UNION
        SELECT acted_run_id FROM reminders_finding WHERE acted_run_id IS NOT NULL) AS free
    FROM reminders_auditrun AS run WHERE run.id > %(after)s ORDER BY run.id LIMIT %(batch)s
), gone AS (
    DELETE FROM reminders_auditrun WHERE id IN (
        SELECT id FROM part WHERE at < %(before)s AND free) RETURNING id
)
SELECT (SELECT count(*) FROM gone), max(id), count(*) FILTER (WHERE at < %(before)s) FROM part
"""


def prune() -> dict[str, int]:
    """Delete what is older than `AUDIT_KEEP`, and receipts that have expired. Returns how many rows of each kind."""
    before = database_now() - settings.AUDIT_KEEP
    # Findings first: they are what keeps runs.
    deleted = {
        "findings": _walk(_FINDINGS, before),
        "runs": _walk(_RUNS, before),
        "transitions": _walk(_TRANSITIONS, before),
        "receipts": _receipts(),
    }
    log.info("audit.pruned", before=before.isoformat(), **deleted)
    return deleted


def _receipts() -> int:
    """They have an age of their own; see `tickets.receipts`."""
    total = 0
    while True:
        with transaction.atomic(durable=True):
            gone = receipts.forget(limit=BATCH)
        total += gone
        if gone < BATCH:
            return total


def _walk(sql: str, before: datetime) -> int:
    total = after = 0
    while True:
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            cursor.execute(sql, {"before": before, "after": after, "batch": BATCH})
            gone, last, old = cursor.fetchone()
        total += int(gone)
        after = last or after
        if not old:
            return total
