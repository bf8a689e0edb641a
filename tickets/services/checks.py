"""Checks that the services share. Each raises an error of `helpdesk.errors` or returns what it checked."""

from collections.abc import Collection

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from helpdesk.errors import InvalidInput, InvalidTransition, NotFound, VersionConflict
from tickets.locks import Actor
from tickets.models import Team, Ticket
from tickets.states import Status

MAX_TEXT = 20_000


def ticket_under_lock(team: Team, ticket_id: int, actor: Actor) -> Ticket:
    """The ticket inside the locked team. Another team's ticket, or for a customer another person's, does not exist."""
    ticket = (
        Ticket.objects.select_related("assignee__user", "creator", "reminder_set_by")
        .filter(pk=ticket_id, team=team)
        .first()
    )
    if ticket is None or not (actor.is_staff or ticket.creator_id == actor.user_id):
        raise NotFound
    ticket.team = team
    return ticket


def require_status(ticket: Ticket, allowed: Collection[Status], message: str | Promise) -> None:
    if ticket.status not in allowed:
        raise InvalidTransition(message)


def require_not_closed(ticket: Ticket) -> None:
    if ticket.status == Status.CLOSED:
        raise InvalidTransition(
            _("This ticket is closed. Closed is final; open a new ticket instead.")
        )


def require_version(ticket: Ticket, version: object) -> None:
    """The caller must have seen the present ticket: the second of two edits is told, it never wins silently."""
    if not isinstance(version, int) or isinstance(version, bool):
        raise InvalidInput(version=_("A whole number is needed."))
    if ticket.version != version:
        raise VersionConflict(current_version=ticket.version)


def clean_text(
    field: str, value: object, *, required: bool = True, max_length: int = MAX_TEXT
) -> str:
    """The text without surrounding space. PostgreSQL cannot store NUL, so it is refused here, with a field error."""
    if not isinstance(value, str):
        raise InvalidInput(**{field: _("Text is needed.")})
    value = value.strip()
    if required and not value:
        raise InvalidInput(**{field: _("This must not be empty.")})
    if len(value) > max_length:
        raise InvalidInput(**{field: _("This is too long.")})
    if "\x00" in value or not _is_unicode(value):
        raise InvalidInput(**{field: _("This contains a character that cannot be stored.")})
    return value


def _is_unicode(value: str) -> bool:
    """Half of a surrogate pair is no character; Python has it, PostgreSQL does not."""
    return value.isascii() or not any("\ud800" <= each <= "\udfff" for each in value)


def clean_choice(field: str, value: object, choices: Collection[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise InvalidInput(**{field: _("This is not one of the choices.")})
    return value
