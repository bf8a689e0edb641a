"""What a person may do about findings: acknowledge, resolve, have one mended, have the audit look now."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.utils.translation import gettext_lazy as _

from helpdesk.clock import database_now
from helpdesk.errors import InvalidTransition, NotFound
from reminders.audit import record, runner
from reminders.audit.registry import CHECKS
from reminders.audit.repair import Person, StillThere, mend
from reminders.audit.runner import Report
from reminders.models import AuditRun, Finding
from reminders.outbox import BrokerRefused
from reminders.states import Handling, Trigger
from tickets.locks import Actor, actor_under_lock, locked_team, locked_teams, site_admin
from tickets.services.checks import clean_text

MAX_NOTE = 2000


def acknowledge_finding(*, finding_id: int, actor_id: int, note: str = "") -> None:
    """Say that somebody is looking after it. Administrators of its team; superusers for those of no team."""
    _handle(
        finding_id,
        actor_id,
        Handling.ACKNOWLEDGED,
        clean_text("note", note, required=False, max_length=MAX_NOTE),
    )


def resolve_finding(*, finding_id: int, actor_id: int, note: str) -> None:
    """Say that it is dealt with, or is to be lived with; needs a note. Who may: as above.

    It asks for nobody any more, and is not opened anew while it is still seen.
    """
    _handle(finding_id, actor_id, Handling.RESOLVED, clean_text("note", note, max_length=MAX_NOTE))


def repair_finding(*, finding_id: int, actor_id: int) -> record.Record:
    """Have a finding mended that is in doubt, or whose repair failed. Administrators of its team.

    The repair looks again under the team lock; if the world has moved, it notes that and does nothing.
    Raises `InvalidTransition` if there is nothing to do, or it cannot be done.
    """
    with _handling(finding_id, actor_id) as (finding, _actor, now):
        check = CHECKS.get(finding.code)
        if check is None or check.action is None or finding.team_id is None:
            raise InvalidTransition(_("There is no repair for findings of this kind."))
        run = AuditRun.objects.create(
            trigger=Trigger.PERSON,
            actor_id=actor_id,
            team_id=finding.team_id,
            codes=[finding.code],
            started_at=now,
            finished_at=now,
            found=1,
        )
    try:
        (done,) = mend(
            check,
            finding.team_id,
            [record.of_row(finding)],
            run,
            person=Person(actor_id),
        )
    except (StillThere, BrokerRefused, LookupError, TypeError, ValueError) as error:
        raise InvalidTransition(
            _("It could not be repaired: %(error)s") % {"error": f"{type(error).__name__} {error}"}
        ) from error
    return done


def audit_now(*, actor_id: int, team_id: int | None = None, full: bool = False) -> Report:
    """Have the audit look at a team (its administrators), or at everything (superusers). Raises `AuditBusy`."""
    if team_id is None:
        with locked_teams([]):
            site_admin(actor_id)
    else:
        with locked_team(team_id) as team:
            actor_under_lock(team, actor_id).require_admin()
    return runner.audit(trigger=Trigger.PERSON, team_id=team_id, actor_id=actor_id, full=full)


def _handle(finding_id: int, actor_id: int, handling: Handling, note: str) -> None:
    with _handling(finding_id, actor_id) as (finding, actor, now):
        finding.handling = handling
        finding.note = note
        finding.handled_by_id = actor.user_id
        finding.handled_at = now
        finding.save(update_fields=["handling", "note", "handled_by", "handled_at"])


@contextmanager
def _handling(finding_id: int, actor_id: int) -> Iterator[tuple[Finding, Actor, datetime]]:
    """The open finding under its team's lock, with the actor who may handle it, and the time."""
    of = Finding.objects.filter(pk=finding_id, team__isnull=False)
    team_ids = list(of.values_list("team_id", flat=True))
    with locked_teams(team_ids) as teams:
        actor = actor_under_lock(teams[0], actor_id) if teams else site_admin(actor_id)
        actor.require_admin()
        # Locked: the audit, which may be closing it, does not take the team's lock for that.
        finding = (
            Finding.objects.select_for_update(no_key=True, of=("self",))
            .filter(pk=finding_id, team=teams[0] if teams else None)
            .first()
        )
        if finding is None:
            raise NotFound
        if finding.closed_at is not None:
            raise InvalidTransition(_("This is already gone."))
        yield finding, actor, database_now()
