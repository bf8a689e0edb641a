"""Doing it once: a request that names a key gets the answer it got before, instead of a second thing.

The answer is made and stored in the transaction that creates the thing. So a client whose connection
broke, or whose server was killed at any moment, can send the same request again: either nothing had
happened, or the answer is there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from helpdesk.clock import database_now
from helpdesk.errors import KeyReused
from tickets.models import Receipt

KEEP: Final = timedelta(hours=24)


@dataclass(slots=True, kw_only=True)
class Request:
    """Who asks for what; `answer` makes the answer from what was created. `key` None: it may happen twice.

    `answered` is the answer, after the service has returned.
    """

    user_id: int
    key: str | None
    fingerprint: str
    answer: Callable[[Any], Mapping[str, Any]]
    answered: Mapping[str, Any] = field(default_factory=dict)


class AlreadyDone(Exception):
    """The same request was carried out before; `answer` is what it was answered with."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.answer = answer
        super().__init__()


def claim(request: Request | None) -> None:
    """Call under the team's lock, once the actor is known to be allowed: a second one waits for the first there.

    Raises `AlreadyDone`, or `KeyReused` if the key came with something else.
    """
    if request is None or request.key is None:
        return
    receipt = Receipt.objects.filter(user=request.user_id, key=request.key).first()
    if receipt is None:
        return
    if receipt.created_at <= database_now() - KEEP:
        receipt.delete()
    elif receipt.fingerprint != request.fingerprint:
        raise KeyReused
    else:
        raise AlreadyDone(receipt.answer)


def keep(request: Request | None, created: Any, *, now: datetime) -> None:
    """Make the answer and store it, as the last step of the transaction.

    The same key at the same time in another team, whose lock is another, raises `KeyReused`.
    """
    if request is None:
        return
    request.answered = request.answer(created)
    if request.key is None:
        return
    _receipt, is_first = Receipt.objects.get_or_create(
        user_id=request.user_id,
        key=request.key,
        defaults={
            "fingerprint": request.fingerprint,
            "answer": request.answered,
            "created_at": now,
        },
    )
    if not is_first:
        raise KeyReused


def forget(*, limit: int) -> int:
    """Delete receipts that are older than they are kept, so many at the most. Returns how many."""
    old = Receipt.objects.filter(created_at__lt=database_now() - KEEP).order_by("created_at")
    count, _by_model = Receipt.objects.filter(pk__in=old.values("pk")[:limit]).delete()
    return count
