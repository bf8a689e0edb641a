"""What a check is, and the list of all of them.

A check is one class with one SELECT. The runner owns everything else: which rows it looks at, the
locks, the record, the log, the order of things, the counting.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, TypeVar

from django.utils.functional import Promise

from reminders.states import Action, Severity, Subject

# How far two clock readings of concurrent transactions may lie apart before it means anything, in
# PostgreSQL's words. Longer than a transaction may wait for a lock.
SLACK: Final = "interval '1 minute'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One inconsistency as one statement read it.

    `since` None: nobody can say. `evidence` maps "table.column" to the value that was there. `doubts` say why it is ambiguous; a
    finding without doubts, of a check that has a repair, is certain. `team_id` None: of no team.
    """

    subject_id: int
    team_id: int | None
    since: datetime | None
    evidence: Mapping[str, Any]
    doubts: Sequence[str] = ()


class Check:
    """A kind of inconsistency.

    `query` selects `subject` (an id), `team`, `since`, optionally `doubts` (see `doubts()`), and as
    many columns named "table.column" as explain the finding: those become its evidence. It has the
    place `{scope}` for the condition that says which rows to look at, and the parameter `%(now)s`, the
    database's time. Rows of the subject are called `task`, `ticket` or `notice` there.

    `live` is the condition of the few rows that every scan looks at; `stored` says that the others
    matter too: those are looked at when they are recent, and slice by slice.

    A check with an `action` also has `repair()`. It is called under the team lock, with the tasks
    locked, with what the same query has just found again, and without any doubt.
    """

    code: ClassVar[str]
    title: ClassVar[Promise]
    # What it means and what a person can do.
    meaning: ClassVar[Promise]
    subject: ClassVar[Subject]
    severity: ClassVar[Severity]
    query: ClassVar[str]
    live: ClassVar[str] = ""
    stored: ClassVar[bool] = False
    action: ClassVar[Action | None] = None

    def found(self, row: Mapping[str, Any]) -> Found:
        """A row of the query as a finding."""
        return Found(
            subject_id=row["subject"],
            team_id=row["team"],
            since=row["since"],
            evidence={name: value for name, value in row.items() if "." in name},
            doubts=row.get("doubts") or (),
        )

    def repair(self, found: Sequence[Found], *, team_id: int, now: datetime) -> None:
        """Mend all of them, or raise: whatever is raised takes everything back."""
        raise NotImplementedError


CHECKS: Final[dict[str, Check]] = {}

_Class = TypeVar("_Class", bound=type[Check])


def check(class_: _Class) -> _Class:
    """Put a check on the list. It runs from now on; its place in the list is its turn."""
    CHECKS[class_.code] = class_()
    return class_


def doubts(**conditions: str) -> str:
    """SQL for the names of those conditions that hold. A condition that is NULL does not."""
    cases = ", ".join(f"CASE WHEN {sql} THEN '{name}' END" for name, sql in conditions.items())
    return f"array_remove(ARRAY[{cases}], NULL)"


def in_future(moment: str) -> str:
    """SQL: later than now, by more than clocks differ."""
    return f"{moment} > %(now)s + {SLACK}"
