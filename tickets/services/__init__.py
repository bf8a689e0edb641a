"""Every write on teams, members and tickets.

Each service has one shape: validate the input, lock the team, read the actor, find the ticket in the
team, check role, status and version, change, record the event, plan or end reminders. They take ids
and return the fresh object; all arguments are keywords. They raise the errors of `helpdesk.errors`:
`NotFound` (no such thing in a team of the actor), `NotAllowed`, `InvalidTransition`,
`VersionConflict`, `InvalidInput`; whatever is raised, nothing was changed.
"""

from tickets.services.assignment import assign_ticket
from tickets.services.conversation import add_internal_note, reply_to_ticket
from tickets.services.editing import create_ticket, edit_ticket
from tickets.services.lifecycle import (
    close_ticket,
    reopen_ticket,
    resolve_ticket,
    start_ticket,
    transition_ticket,
)
from tickets.services.linking import add_blocker, remove_blocker
from tickets.services.members import (
    activate_account,
    add_member,
    change_role,
    create_team,
    deactivate_account,
    remove_member,
)
from tickets.services.reminding import schedule_reminder

__all__ = [
    "activate_account",
    "add_blocker",
    "add_internal_note",
    "add_member",
    "assign_ticket",
    "change_role",
    "close_ticket",
    "create_team",
    "create_ticket",
    "deactivate_account",
    "edit_ticket",
    "remove_blocker",
    "remove_member",
    "reopen_ticket",
    "reply_to_ticket",
    "resolve_ticket",
    "schedule_reminder",
    "start_ticket",
    "transition_ticket",
]
