"""One audit after the other: look, write down, log, mend, note what was done. The only way in."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from time import perf_counter
from typing import Any, Self

import structlog
from django.db import connection
from django.utils.translation import gettext_lazy as _

from helpdesk.clock import database_now
from helpdesk.errors import Busy
from reminders.audit import checks, record
from reminders.audit.choice import Scope
from reminders.audit.look import Looked, look
from reminders.audit.record import Record
from reminders.audit.registry import CHECKS, Check
from reminders.audit.repair import repair
from reminders.models import AuditRun
from reminders.states import Action, Handling, Subject, Trigger
from tickets.locks import audit_lane

log = structlog.get_logger("reminders.audit")

__all__ = ["AuditBusy", "Report", "audit", "checks"]


class AuditBusy(Busy):
    """Another audit is running; it finds the same."""

    default_message = _("Another audit is running. Please try again in a moment.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an audit did. Times in milliseconds; `run_id` None: nothing was written."""

    run_id: int | None
    started_at: datetime
    duration_ms: float
    query_ms: float
    statements: int
    rows: int
    findings: Sequence[Record] = ()
    gone: Sequence[Record] = ()
    errors: dict[str, str] = field(default_factory=dict)
    broker: dict[str, Any] = field(default_factory=dict)

    @property
    def unrepaired(self) -> list[Record]:
        """What still waits for somebody: neither mended nor settled by a person."""
        return [
            each
            for each in self.findings
            if not each.is_repaired and each.handling != Handling.RESOLVED
        ]


def audit(
    *,
    trigger: Trigger,
    team_id: int | None = None,
    codes: Sequence[str] = (),
    actor_id: int | None = None,
    full: bool = False,
    dry_run: bool = False,
) -> Report:
    """Look at the queue and what belongs to it, record what cannot be, and mend what is certain.

    `codes` limits it to some checks, `team_id` to one team. `full` looks at every stored row, otherwise at
    what is active, recent, and next in turn. `dry_run` writes nothing and mends nothing.

    Raises `AuditBusy` while another one runs.
    """
    with audit_lane() as free, _Watch() as watch:
        if not free:
            raise AuditBusy
        run = AuditRun(
            trigger=trigger,
            actor_id=actor_id,
            team_id=team_id,
            codes=list(codes),
            full=full,
            started_at=database_now(),
        )
        looked = look(
            Scope(
                checks=_checks(codes, team_id),
                team_id=team_id,
                full=full,
                recent_only=trigger == Trigger.BOUNDARY,
            ),
            now=run.started_at,
        )
        run.errors, run.broker, run.cursors = looked.errors, looked.broker, looked.cursors
        found, gone = record.records(looked, now=run.started_at), list[Record]()
        if not dry_run:
            found, gone = _carry_out(found, looked, run, watch)
        return Report(
            run_id=run.pk,
            started_at=run.started_at,
            duration_ms=watch.milliseconds,
            query_ms=watch.query_milliseconds,
            statements=watch.statements,
            rows=looked.rows,
            findings=found,
            gone=gone,
            errors=looked.errors,
            broker=looked.broker,
        )


def _checks(codes: Sequence[str], team_id: int | None) -> list[Check]:
    """The wanted checks, in their order. The broker belongs to no team."""
    return [
        check
        for code, check in CHECKS.items()
        if (not codes or code in codes) and (team_id is None or check.subject != Subject.BROKER)
    ]


def _carry_out(
    found: list[Record], looked: Looked, run: AuditRun, watch: "_Watch"
) -> tuple[list[Record], list[Record]]:
    """Write down and commit first, then mend. With nothing found, that is a single transaction."""
    now = database_now()
    if not found:
        _finish(run, watch, now)
    found, gone = record.write(found, looked, run, now=now)
    if found:
        mended = {each.id: each for each in repair(found, run)}
        found = [mended.get(each.id, each) for each in found]
        run.repaired = sum(each.id in mended and each.is_repaired for each in found)
        run.failed = sum(each.action == Action.FAILED and each.id in mended for each in found)
        _finish(run, watch, database_now())
        run.save(update_fields=["repaired", "failed", "finished_at", "duration_ms", "query_ms"])
    if run.pk:
        # That nothing was found, once a minute, is in the table; the log is for what happened.
        quiet = run.trigger == Trigger.BEAT and not (found or gone or run.errors)
        log.log(
            logging.DEBUG if quiet else logging.INFO,
            "audit.run",
            run=run.pk,
            trigger=run.trigger,
            team=run.team_id,
            found=run.found,
            new=run.opened,
            repaired=run.repaired,
            failed=run.failed,
            gone=len(gone),
            rows=looked.rows,
            duration_ms=run.duration_ms,
        )
    return found, gone


def _finish(run: AuditRun, watch: "_Watch", now: datetime) -> None:
    run.finished_at = now
    run.duration_ms = round(watch.milliseconds)
    run.query_ms = round(watch.query_milliseconds)


class _Watch:
    """How long it takes, and how much of that the statements take."""

    def __init__(self) -> None:
        self._queries = 0.0
        self.statements = 0

    def __enter__(self) -> Self:
        self._began = perf_counter()
        self._wrapper = connection.execute_wrapper(self._timed)
        self._wrapper.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._wrapper.__exit__(None, None, None)

    def _timed(self, execute: Callable[..., Any], *arguments: Any) -> Any:
        began = perf_counter()
        try:
            return execute(*arguments)
        finally:
            self._queries += perf_counter() - began
            self.statements += 1

    @property
    def milliseconds(self) -> float:
        return (perf_counter() - self._began) * 1000

    @property
    def query_milliseconds(self) -> float:
        return self._queries * 1000
