"""Pointing this process at another broker."""

import kombu.pools

from helpdesk.celery import app


def use_broker(url: str) -> None:
    """Publish to `url` from now on. Celery and Kombu keep pools per process; those are let go first."""
    if app.conf.broker_url == url:
        return
    app.conf.broker_url = url
    kombu.pools.reset()
    app._after_fork()
