"""Kombu's Redis transport, made to survive losing the broker while it holds messages.

When the connection breaks, Kombu 5.7 closes the channel and tries to give the unacknowledged messages
back over that same connection. It fails with an AttributeError that Celery takes for unrecoverable,
and the worker exits instead of reconnecting. A message is only a hint here: what was held is
published again from its row, so it may simply be forgotten.
"""

import logging
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis

log = logging.getLogger(__name__)


class ForgetfulQoS(redis.QoS):
    """Gives held messages back at an orderly shutdown; without a broker forgets them."""

    def restore_unacked_once(self, stderr: Any = None) -> None:
        try:
            super().restore_unacked_once(stderr)
        except Exception as error:  # noqa: BLE001  whatever it is: closing a dead connection must not fail
            log.warning("broker.held_messages_forgotten: %s", error)
            # Kombu insists that nothing is left once it has tried.
            if self._delivered is not None:
                self._delivered.clear()


class Channel(redis.Channel):
    QoS = ForgetfulQoS


class Transport(redis.Transport):
    Channel = Channel


def install() -> None:
    """Use it for redis:// and rediss:// addresses."""
    TRANSPORT_ALIASES["redis"] = TRANSPORT_ALIASES["rediss"] = f"{__name__}:Transport"
