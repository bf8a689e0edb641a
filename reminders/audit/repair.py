"""Mending what is certain: under the team lock, after looking again, together with the note of what was done.

Repair and note are one transaction, so a process that is killed leaves both or none. If the world has
moved since the finding was recorded, nothing is done and that is noted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import structlog
from django.db import transaction

from helpdesk.clock import database_now
from helpdesk.errors import DomainError
from reminders.audit import record
from reminders.audit.look import look_again
from reminders.audit.record import Record
from reminders.audit.registry import CHECKS, Check
from reminders.models import AuditRun, Task
from reminders.outbox import BrokerRefused
from reminders.states import Action, Subject, Verdict
from tickets.locks import actor_under_lock, locked_team

log = structlog.get_logger("reminders.audit")

# Findings mended under one lock.
BATCH = 100


class StillThere(Exception):
    """The repair changed nothing that the check looks at."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who has looked at the evidence and wants it mended although it is in doubt."""

    user_id: int


def repair(found: Sequence[Record], run: AuditRun) -> list[Record]:
    """Mend the certain findings. Returns them as they are afterwards."""
    done: list[Record] = []
    for check, team_id, group in _batches(found):
        done += _try(check, team_id, group, run)
    return done


def _batches(found: Sequence[Record]) -> Iterator[tuple[Check, int, list[Record]]]:
    certain = [
        each for each in found if each.verdict == Verdict.CERTAIN and each.team_id is not None
    ]
    turn = {code: place for place, code in enumerate(CHECKS)}
    certain.sort(key=lambda each: (turn[each.code], each.team_id, each.subject_id))
    for (code, team_id), rows in groupby(certain, key=lambda each: (each.code, each.team_id)):
        assert team_id is not None
        group = list(rows)
        for start in range(0, len(group), BATCH):
            yield CHECKS[code], team_id, group[start : start + BATCH]


def _try(check: Check, team_id: int, group: Sequence[Record], run: AuditRun) -> list[Record]:
    """Mend them together; if that fails, each alone, so that one bad row holds back nothing else."""
    try:
        return mend(check, team_id, group, run)
    except Exception as error:  # noqa: BLE001  whatever it is, it is noted and logged
        # The broker and the lock would fail each of them as well, after a wait for each.
        if len(group) == 1 or isinstance(error, BrokerRefused | DomainError):
            return _failed(group, error, run)
        return [each for one in group for each in _try(check, team_id, [one], run)]


def mend(
    check: Check,
    team_id: int,
    group: Sequence[Record],
    run: AuditRun,
    *,
    person: Person | None = None,
) -> list[Record]:
    """Mend findings of one check in one team, if they still are what they were. Returns them as noted.

    For the audit, a finding that is in doubt by now is left alone. A `person` decides that; they have to
    be an administrator of the team.
    """
    with locked_team(team_id) as team:
        if person:
            actor_under_lock(team, person.user_id).require_admin()
        now = database_now()
        ids = [each.subject_id for each in group]
        if check.subject == Subject.TASK:
            # Locked, so that no worker claims one between this look and the repair.
            tasks = Task.objects.select_for_update(no_key=True, of=("self",))
            list(tasks.filter(pk__in=ids).order_by("id").values_list("pk"))
        again = {each.subject_id: each for each in look_again(check, ids, now=now)}
        wanted = [each for each in again.values() if person or not each.doubts]
        if wanted:
            check.repair(wanted, team_id=team_id, now=now)
            mended = {each.subject_id for each in wanted}
            if mended & {each.subject_id for each in look_again(check, mended, now=now)}:
                raise StillThere
        assert check.action is not None
        outcome: dict[int, tuple[Action, str]] = {}
        for each in group:
            assert each.id is not None
            seen = again.get(each.subject_id)
            if seen is None:
                outcome[each.id] = (Action.NOTHING, "")
            elif seen.doubts and not person:
                outcome[each.id] = (Action.REFUSED, ", ".join(seen.doubts))
            else:
                outcome[each.id] = (check.action, "")
        settled = record.settle(outcome, run.pk, now=now)
        transaction.on_commit(lambda: _log(settled), robust=True)
    return settled


def _failed(group: Sequence[Record], error: Exception, run: AuditRun) -> list[Record]:
    detail = f"{type(error).__name__}: {error}"[:2000]
    log.error("audit.repair_failed", check=group[0].code, findings=len(group), exc_info=error)
    with transaction.atomic(durable=True):
        settled = record.settle(
            {each.id: (Action.FAILED, detail) for each in group if each.id is not None},
            run.pk,
            now=database_now(),
        )
        transaction.on_commit(lambda: _log(settled), robust=True)
    return settled


def _log(settled: Sequence[Record]) -> None:
    for each in settled:
        log.warning("audit.repair", **record.fields(each))
