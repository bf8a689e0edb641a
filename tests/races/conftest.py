"""Real threads on real connections, brought together at named points instead of by sleeping."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from time import monotonic
from typing import Any

import pytest
from django.db import connection, connections

TIMEOUT = 20.0


class Pause:
    """Holds the first thread that calls a function there, before or after the call, until told to go on."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, *, after: bool = False
    ) -> None:
        self._reached, self._go, self._taken = Event(), Event(), False
        original: Callable[..., Any] = getattr(owner, name)

        def paused(*args: Any, **kwargs: Any) -> Any:
            if self._taken:
                return original(*args, **kwargs)
            self._taken = True
            if after:
                result = original(*args, **kwargs)
                self._hold()
                return result
            self._hold()
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, paused)

    def _hold(self) -> None:
        self._reached.set()
        assert self._go.wait(TIMEOUT), "nobody let the paused thread go on"

    def wait(self) -> None:
        """Until a thread is held there."""
        assert self._reached.wait(TIMEOUT), "no thread got to the pause"

    def go_on(self) -> None:
        self._go.set()


class Threads:
    """Starts calls in threads of their own; each closes its connection."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def start(self, call: Callable[[], Any]) -> "Future[Any]":
        def closing() -> Any:
            try:
                return call()
            finally:
                connections.close_all()

        return self._pool.submit(closing)

    @staticmethod
    def wait_until_blocked(count: int = 1) -> None:
        """Until PostgreSQL says that so many sessions of this database wait for a lock."""
        deadline = monotonic() + TIMEOUT
        while monotonic() < deadline:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND cardinality(pg_blocking_pids(pid)) > 0"
                )
                if cursor.fetchone()[0] >= count:
                    return
        raise AssertionError("nobody waits for a lock")


@pytest.fixture
def threads(transactional_db: None) -> Iterator[Threads]:
    with ThreadPoolExecutor(max_workers=12) as pool:
        yield Threads(pool)
