"""What can go wrong by the rules of the product. Services raise these; `pages` and `api` map them to HTTP, each once."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Message = str | Promise


class DomainError(Exception):
    """A rule was not met; nothing was changed.

    `code` is for programs and never changes, `status` is the HTTP status, `message` is for people
    (translated when shown), `data` is what a client needs to recover.
    """

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 400
    default_message: ClassVar[Message] = _("This is not possible.")

    def __init__(self, message: Message | None = None, **data: Any) -> None:
        self.message = message or self.default_message
        self.data: Mapping[str, Any] = data
        super().__init__(self.message)

    def __str__(self) -> str:
        return str(self.message)


class NotFound(DomainError):
    """It does not exist, or not in a team of the person who asks; the two are told apart for nobody."""

    code = "not_found"
    status = 404
    default_message = _("There is nothing here that you may see.")


class NotAllowed(DomainError):
    """The person is a member of the team, but their role may not do this."""

    code = "not_allowed"
    status = 403
    default_message = _("Your role in this team does not allow this.")


class VersionConflict(DomainError):
    """The caller saw an older version of the ticket. `data["current_version"]` is the present one."""

    code = "version_conflict"
    status = 409
    default_message = _(
        "Somebody changed this ticket after you opened it. Look at it again before you decide."
    )

    def __init__(self, *, current_version: int) -> None:
        super().__init__(current_version=current_version)


class InvalidTransition(DomainError):
    """The state does not allow this step."""

    code = "invalid_transition"
    status = 409
    default_message = _("The current status does not allow this.")


class KeyReused(DomainError):
    """The Idempotency-Key came with another request before; see `tickets.receipts`."""

    code = "idempotency_key_reused"
    status = 422
    default_message = _("This Idempotency-Key was used for another request.")


class Busy(DomainError):
    """Somebody else has held the team for too long; the same call may well succeed in a moment."""

    code = "busy"
    status = 503
    default_message = _("This team is busy right now. Please try again in a moment.")


class InvalidInput(DomainError):
    """A value makes no sense. `data["errors"]` maps the field to its message."""

    code = "invalid_input"
    status = 400
    default_message = _("Some of the input is not valid.")

    def __init__(self, **errors: Message) -> None:
        super().__init__(next(iter(errors.values()), None), errors=errors)
