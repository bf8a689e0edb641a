"""Public replies and internal notes.

They carry no version: they add to the conversation and overwrite nothing, so two people who write at
once are both heard. They raise the ticket's version and leave its reminder alone.
"""

from helpdesk.clock import database_now
from tickets import receipts
from tickets.history import record_change
from tickets.locks import actor_under_lock, locked_team
from tickets.models import Comment, Ticket
from tickets.receipts import Request
from tickets.services.checks import clean_text, require_not_closed, ticket_under_lock
from tickets.states import EventKind


def reply_to_ticket(
    *, team_id: int, ticket_id: int, actor_id: int, body: str, request: Request | None = None
) -> Ticket:
    """Add a public reply. Staff, and the customer whose ticket it is; not on a closed ticket."""
    return _add_comment(team_id, ticket_id, actor_id, body, request, internal=False)


def add_internal_note(
    *, team_id: int, ticket_id: int, actor_id: int, body: str, request: Request | None = None
) -> Ticket:
    """Add a note that only staff can read. Staff only; not on a closed ticket."""
    return _add_comment(team_id, ticket_id, actor_id, body, request, internal=True)


def _add_comment(
    team_id: int,
    ticket_id: int,
    actor_id: int,
    body: str,
    request: Request | None,
    *,
    internal: bool,
) -> Ticket:
    body = clean_text("body", body)
    with locked_team(team_id) as team:
        actor = actor_under_lock(team, actor_id)
        ticket = ticket_under_lock(team, ticket_id, actor)
        if internal:
            actor.require_staff()
        receipts.claim(request)
        require_not_closed(ticket)
        now = database_now()
        comment = Comment.objects.create(
            ticket=ticket, author_id=actor.user_id, body=body, internal=internal, created_at=now
        )
        record_change(
            ticket=ticket,
            kind=EventKind.NOTED if internal else EventKind.REPLIED,
            actor=actor,
            now=now,
            data={"comment": comment.pk},
        )
        receipts.keep(request, comment, now=now)
    return ticket
