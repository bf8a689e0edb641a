"""Looking into the broker: what it holds, and a short claim that needs no database. Hints only; nothing is decided here."""

import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from typing import Any

from django.conf import settings
from redis import Redis

from helpdesk.celery import QUEUES, app

# Messages of each kind that are read; a longer queue is counted, and sampled from its front.
SAMPLE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Messages by queue and those workers hold, and the hints (team, task, run) in the messages that were read."""

    depth: dict[str, int] = field(default_factory=dict)
    held: int = 0
    hints: list[tuple[int, int, int]] = field(default_factory=list)


def look() -> Contents:
    """What the broker holds at this moment, in one round trip. Raises `redis.RedisError` if it does not answer."""
    pipe = _client(app.conf.broker_url).pipeline(transaction=False)
    for queue in QUEUES:
        pipe.llen(queue)
    pipe.hlen("unacked")
    # New messages come in at the left; the right end is next.
    pipe.lrange("reminders", -SAMPLE, -1)
    pipe.hscan("unacked", count=SAMPLE)
    *depth, held, waiting, (_cursor, unacknowledged) = pipe.execute()
    hints: list[tuple[int, int, int]] = []
    for message in waiting:
        hints += _hints(json.loads(message))
    for entry in unacknowledged.values():
        hints += _hints(json.loads(entry)[0])
    return Contents(depth=dict(zip(QUEUES, depth, strict=True)), held=held, hints=hints)


def claim(key: str, duration: timedelta) -> bool:
    """True for the first who asks within the duration. Raises `redis.RedisError`."""
    milliseconds = max(1, round(duration.total_seconds() * 1000))
    return bool(_client(app.conf.broker_url).set(key, 1, nx=True, px=milliseconds))


def _hints(message: dict[str, Any]) -> Iterator[tuple[int, int, int]]:
    """The tasks a `reminders.process` message names; nothing for any other message."""
    if message.get("headers", {}).get("task") != "reminders.process":
        return
    (team_id, hints), _kwargs, _embed = json.loads(b64decode(message["body"]))
    for task_id, run in hints:
        yield team_id, task_id, run


@lru_cache(maxsize=4)
def _client(url: str) -> Redis:
    timeout = settings.BROKER_SOCKET_TIMEOUT.total_seconds()
    return Redis.from_url(
        url, socket_timeout=timeout, socket_connect_timeout=timeout, decode_responses=True
    )
