"""Fixtures for the whole suite. Everything runs against a real PostgreSQL and a real Redis-protocol server."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from redis import Redis

from tests.broker import use_broker
from tests.cast import Cast, make_cast


@pytest.fixture
def cast(db: None) -> Cast:
    """An admin, two agents and two customers of one team, and a stranger from another."""
    return make_cast()


@pytest.fixture(autouse=True)
def own_broker(worker_id: str) -> Iterator[Redis]:
    """A database of its own at the broker for each parallel test process, empty before each test."""
    number = 1 if worker_id == "master" else 1 + int(worker_id.removeprefix("gw"))
    url = f"{settings.REDIS_URL.rsplit('/', 1)[0]}/{number}"
    use_broker(url)
    client = Redis.from_url(url)
    client.flushdb()
    yield client
    client.close()


@pytest.fixture(autouse=True)
def no_throttles(settings: Any) -> None:
    """Tests do in a second what nobody does in a minute."""
    settings.THROTTLES = dict.fromkeys(settings.THROTTLES, "")


@pytest.fixture
def plain_static(settings: Any) -> None:
    """Pages name their static files without a manifest: nothing has collected them here."""
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
