"""What the audit notes in code words, said for people. An unknown word is shown as it is."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from django.contrib.messages import constants as levels
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from helpdesk.durations import in_words
from reminders.audit.registry import CHECKS
from reminders.audit.runner import Report

# By the names that checks give to `doubts()`.
DOUBTS: Final[dict[str, Promise]] = {
    "already_told": _("Somebody has a notice of this reminder already."),
    "available_before_task": _("The next attempt is dated before the task."),
    "changed_before_ticket": _("The last change is dated before the ticket."),
    "due_before_ticket": _("The due time lies before the ticket was opened."),
    "due_too_far": _("The due time is further away than any reminder may be set."),
    "evidence_of_sending": _("The evidence of the last task says that the reminder was sent."),
    "kept_disagrees": _("The task that would stay does not agree with the ticket either."),
    "kept_in_future": _("The task that would stay is dated in the future."),
    "never_started": _("The task runs, but has no start."),
    "order_of_copies": _("The newer of the two tasks is dated before the older one."),
    "other_team": _("Task and ticket belong to different teams."),
    "proof_before_due": _("The proof is dated before the due time."),
    "proof_before_task": _("The proof is dated before the task."),
    "proof_in_future": _("The proof is dated in the future."),
    "proof_not_whole": _("Not everybody whom the history names has a notice, or others have one."),
    "published_in_future": _("The publication is dated in the future."),
    "started_before_task": _("The start is dated before the task."),
    "started_in_future": _("The start is dated in the future."),
    "task_after_change": _("The task is newer than the change that would end it."),
    "task_in_future": _("The task is dated in the future."),
    "task_newer_than_ticket": _("The task is for a newer reminder than the ticket knows of."),
    "ticket_in_future": _("The last change of the ticket is dated in the future."),
}

# By what checks write under "proof.problem" in the evidence.
PROBLEMS: Final[dict[str, Promise]] = {
    "evidence of another reminder": _("evidence of another reminder"),
    "its event does not exist": _("its event does not exist"),
    "no evidence": _("no evidence"),
    "the checksum differs": _("the checksum differs"),
}


def titles(codes: Iterable[str]) -> list[str]:
    """Of these checks; of one that is no longer registered, its code."""
    return [str(CHECKS[code].title) if code in CHECKS else code for code in codes]


def doubts_in_words(names: Iterable[object]) -> list[str]:
    return [str(DOUBTS.get(str(name), name)) for name in names]


def brief(milliseconds: float) -> str:
    """A duration that is mostly below a minute: "412 ms", "3.2 s"; from a minute on as everywhere."""
    if milliseconds < 1_000:
        return gettext("%(count)d ms") % {"count": milliseconds}
    if milliseconds < 60_000:
        return gettext("%(count).1f s") % {"count": milliseconds / 1_000}
    return in_words(timedelta(milliseconds=milliseconds))


def report_in_words(report: Report) -> list[tuple[int, str]]:
    """What an audit did, as messages: the level of each and its text."""
    found, left = len(report.findings), len(report.unrepaired)
    said = [(levels.SUCCESS, gettext("The audit found nothing."))]
    if found:
        text = ngettext(
            "The audit found %(found)d inconsistency, of which %(left)d is left for a person.",
            "The audit found %(found)d inconsistencies, of which %(left)d are left for a person.",
            found,
        )
        level = levels.WARNING if left else levels.SUCCESS
        said = [(level, text % {"found": found, "left": left})]
    if report.errors:
        text = gettext("These checks could not be carried out: %(checks)s")
        said.append((levels.ERROR, text % {"checks": ", ".join(titles(report.errors))}))
    return said
