"""What foreign keys over a ticket and its team refer to, built without blocking writes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("tickets", "0004_ticket_by_change")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    sql=[
                        # What an attempt that was interrupted has left behind.
                        "DROP INDEX CONCURRENTLY IF EXISTS ticket_team_and_id",
                        """
                        CREATE UNIQUE INDEX CONCURRENTLY ticket_team_and_id
                        ON tickets_ticket (team_id, id)
                        """,
                        """
                        ALTER TABLE tickets_ticket ADD CONSTRAINT ticket_team_and_id
                        UNIQUE USING INDEX ticket_team_and_id
                        """,
                    ],
                    reverse_sql="ALTER TABLE tickets_ticket DROP CONSTRAINT ticket_team_and_id",
                )
            ],
            state_operations=[
                migrations.AddConstraint(
                    "ticket",
                    models.UniqueConstraint(fields=["team", "id"], name="ticket_team_and_id"),
                )
            ],
        )
    ]
