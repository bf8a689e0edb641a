"""Fixtures for the whole suite. Everything runs against a real PostgreSQL and a real Redis-protocol server."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from redis import Redis

from helpdesk.celery import app
from tests.cast import Cast, make_cast


@pytest.fixture
def cast(db: None) -> Cast:
    """An admin, two agents and two customers of one team, and a stranger from another."""
    return make_cast()


@pytest.fixture(autouse=True)
def own_broker(worker_id: str) -> Iterator[Redis]:
    """A database of its own at the broker for each parallel test process, empty before each test."""
    number = 1 + int(worker_id.removeprefix("gw") or 0) if worker_id != "master" else 1
    url = f"{settings.REDIS_URL.rsplit('/', 1)[0]}/{number}"
    app.conf.broker_url = url
    client = Redis.from_url(url)
    client.flushdb()
    with app.pool.acquire(block=True) as connection:
        assert connection.as_uri(include_password=True) == url
    yield client
    client.close()
