"""Migrations are part of the product: they agree with the models and go both ways."""

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

OURS = ("notifications", "reminders", "tickets")
BY_HAND = (
    "event_kind_known",
    "ticket_assignee_in_team",
    "ticket_link_blocker_in_team",
    "ticket_link_ticket_in_team",
    "ticket_team_and_id",
)


def tables() -> set[str]:
    return {
        name
        for name in connection.introspection.table_names()
        if name.startswith(tuple(f"{app}_" for app in OURS))
    }


@pytest.mark.django_db
def test_models_and_migrations_agree() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


@pytest.mark.django_db(transaction=True)
def test_everything_can_be_taken_back_and_applied_again() -> None:
    everything = MigrationExecutor(connection).loader.graph.leaf_nodes()
    before = tables()
    try:
        # Users are ours and others refer to them, so all goes but what Django needs to remember.
        for app in ("notifications", "reminders", "admin", "tickets"):
            MigrationExecutor(connection).migrate([(app, None)])
        assert tables() == set()
    finally:
        MigrationExecutor(connection).migrate(everything)
    assert tables() == before
    with connection.cursor() as cursor:
        # What Django does not know of, and what is validated apart from being added.
        cursor.execute(
            "SELECT conname, convalidated FROM pg_constraint WHERE conname = ANY(%s)",
            [list(BY_HAND)],
        )
        assert dict(cursor.fetchall()) == dict.fromkeys(BY_HAND, True)
