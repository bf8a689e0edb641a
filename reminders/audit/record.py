"""Writing down what was found, before anything is done about it, and what was done; each is also one line in the log."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import connection, transaction

from reminders.audit.look import Looked
from reminders.audit.registry import CHECKS, Check, Found
from reminders.audit.sql import rows
from reminders.models import AuditRun, Finding
from reminders.states import Action, Handling, Trigger, Verdict

log = structlog.get_logger("reminders.audit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A finding as it is written down. `id` None: a dry run wrote nothing."""

    id: int | None
    code: str
    severity: str
    verdict: str
    subject_kind: str
    subject_id: int
    team_id: int | None
    since: datetime
    last_seen: datetime
    evidence: Mapping[str, Any]
    doubts: Sequence[str]
    seen: int = 1
    handling: str = Handling.OPEN
    action: str = ""
    detail: str = ""
    run_id: int | None = None

    @property
    def dwell(self) -> timedelta:
        return max(self.last_seen - self.since, timedelta(0))

    @property
    def is_repaired(self) -> bool:
        """Nothing is left to do about it: mended, or gone by itself."""
        return self.action not in ("", Action.FAILED, Action.REFUSED)


# What a Record gets from a row of the table; the same names in every statement below.
_RETURNING: Final = """
    id, code, severity, verdict, subject_kind, subject_id, team_id, since, last_seen, evidence,
    doubts, seen, handling, action, action_detail AS detail, run_id
"""

_JSON: Final = ("evidence", "doubts")

_UPSERT: Final = f"""
INSERT INTO reminders_finding AS finding
    (code, severity, verdict, subject_kind, subject_id, team_id, evidence, doubts, since, first_seen,
     last_seen, seen, run_id, action, action_detail, handling, note)
SELECT code, severity, verdict, subject_kind, subject_id, team_id, evidence::jsonb, doubts::jsonb,
       since, %(now)s, %(now)s, 1, %(run)s, '', '', 'OPEN', ''
FROM unnest(%(code)s::text[], %(severity)s::text[], %(verdict)s::text[], %(subject_kind)s::text[],
            %(subject_id)s::bigint[], %(team_id)s::bigint[], %(evidence)s::text[],
            %(doubts)s::text[], %(since)s::timestamptz[])
     AS found(code, severity, verdict, subject_kind, subject_id, team_id, evidence, doubts, since)
ON CONFLICT (code, subject_kind, subject_id) WHERE closed_at IS NULL DO UPDATE
SET severity = EXCLUDED.severity, verdict = EXCLUDED.verdict, team_id = EXCLUDED.team_id,
    evidence = EXCLUDED.evidence, doubts = EXCLUDED.doubts,
    since = least(finding.since, EXCLUDED.since), last_seen = EXCLUDED.last_seen,
    seen = finding.seen + 1, run_id = EXCLUDED.run_id
RETURNING {_RETURNING}
"""

_CLOSE: Final = f"""
UPDATE reminders_finding AS finding SET closed_at = %(now)s
WHERE closed_at IS NULL AND id = ANY(%(ids)s)
RETURNING {_RETURNING}
"""


def records(looked: Looked, *, now: datetime) -> list[Record]:
    """The findings as records, in the order of the checks, not written anywhere."""
    return [
        _unwritten(CHECKS[code], each, now)
        for code, found in looked.found.items()
        for each in found
    ]


def _unwritten(check: Check, found: Found, now: datetime) -> Record:
    certain = check.action is not None and not found.doubts
    return Record(
        id=None,
        code=check.code,
        severity=check.severity.value,
        verdict=(Verdict.CERTAIN if certain else Verdict.AMBIGUOUS).value,
        subject_kind=check.subject.value,
        subject_id=found.subject_id,
        team_id=found.team_id,
        # A date in the future is part of the evidence; nothing dwells since then.
        since=min(found.since or now, now),
        last_seen=now,
        evidence={name: _plain(value) for name, value in found.evidence.items()},
        doubts=list(found.doubts),
    )


def of_row(finding: Finding) -> Record:
    """A row of the table as a record."""
    return Record(
        id=finding.pk,
        code=finding.code,
        severity=finding.severity,
        verdict=finding.verdict,
        subject_kind=finding.subject_kind,
        subject_id=finding.subject_id,
        team_id=finding.team_id,
        since=finding.since,
        last_seen=finding.closed_at or finding.last_seen,
        evidence=finding.evidence,
        doubts=finding.doubts,
        seen=finding.seen,
        handling=finding.handling,
        action=finding.action,
        detail=finding.action_detail,
        run_id=finding.run_id,
    )


def write(
    found: Sequence[Record], looked: Looked, run: AuditRun, *, now: datetime
) -> tuple[list[Record], list[Record]]:
    """Commit the run with its findings, and close those that are gone. Returns the open ones and the gone ones.

    A run after completed tasks that found nothing is not kept: it may come every few seconds.
    """
    with transaction.atomic(durable=True):
        if not found and not looked.gone:
            # That nothing was found may be lost in a crash; it is not worth waiting for the disk.
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL synchronous_commit = off")
        if found or run.trigger != Trigger.BOUNDARY:
            run.save(force_insert=True)
        written = _upsert(found, run, now) if found else []
        gone = _statement(_CLOSE, {"now": now, "ids": looked.gone}) if looked.gone else []
        transaction.on_commit(lambda: _log(written, gone, now), robust=True)
    return written, gone


def _upsert(found: Sequence[Record], run: AuditRun, now: datetime) -> list[Record]:
    names = ("code", "severity", "verdict", "subject_kind", "subject_id", "team_id", "since")
    written = _statement(
        _UPSERT,
        {name: [getattr(each, name) for each in found] for name in names}
        | {name: [json.dumps(getattr(each, name)) for each in found] for name in _JSON}
        | {"now": now, "run": run.pk},
    )
    run.found, run.opened = len(written), sum(each.seen == 1 for each in written)
    run.save(update_fields=["found", "opened"])
    turn = {code: place for place, code in enumerate(CHECKS)}
    return sorted(written, key=lambda each: (turn[each.code], each.subject_id))


def _log(written: Sequence[Record], gone: Sequence[Record], now: datetime) -> None:
    """What persists is counted, not repeated."""
    for each in written:
        if each.seen == 1:
            log.warning("audit.finding", **fields(each))
    for each in gone:
        log.info("audit.gone", **fields(replace(each, last_seen=now)))


def settle(
    outcome: Mapping[int, tuple[Action, str]], run_id: int, *, now: datetime
) -> list[Record]:
    """Write down what was done about these findings (by id), in the transaction that did it. Returns them."""
    if not outcome:
        return []
    return _statement(
        f"""
        UPDATE reminders_finding AS finding
        SET action = done.action, action_detail = done.detail, acted_at = %(now)s,
            acted_run_id = %(run)s,
            verdict = CASE done.action WHEN 'REFUSED' THEN 'AMBIGUOUS' ELSE verdict END,
            closed_at = CASE WHEN done.action NOT IN ('FAILED', 'REFUSED') THEN %(now)s END
        FROM unnest(%(ids)s::bigint[], %(actions)s::text[], %(details)s::text[])
             AS done(finding_id, action, detail)
        WHERE id = done.finding_id AND closed_at IS NULL
        RETURNING {_RETURNING.replace("action,", "finding.action,", 1)}
        """,
        {
            "ids": list(outcome),
            "actions": [action.value for action, _detail in outcome.values()],
            "details": [detail for _action, detail in outcome.values()],
            "now": now,
            "run": run_id,
        },
    )


def fields(record: Record) -> dict[str, Any]:
    """What every line about a finding says."""
    return {
        "finding": record.id,
        "check": record.code,
        "severity": record.severity,
        "verdict": record.verdict,
        "subject": f"{record.subject_kind.lower()} {record.subject_id}",
        "team": record.team_id,
        "since": record.since.isoformat(),
        "dwell_s": round(record.dwell.total_seconds(), 3),
        "evidence": dict(record.evidence),
        "doubts": list(record.doubts),
        "seen": record.seen,
        "action": record.action,
        "detail": record.detail,
        "run": record.run_id,
    }


def _statement(sql: str, parameters: Mapping[str, Any]) -> list[Record]:
    return [Record(**row) for row in rows(sql, parameters)]


def _plain(value: Any) -> Any:
    """A value of the database as JSON has it; times with all their digits."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, str | int | float | bool | dict):
        return value
    return str(value)
