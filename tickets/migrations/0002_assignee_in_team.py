"""The assignee of a ticket is a member of the ticket's own team: a foreign key over both columns.

Django cannot declare one over two columns. Immediate, because the services never need it deferred.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("tickets", "0001_initial")]

    operations = [
        migrations.RunSQL(
            sql="""
                ALTER TABLE tickets_ticket ADD CONSTRAINT ticket_assignee_in_team
                FOREIGN KEY (team_id, assignee_id) REFERENCES tickets_membership (team_id, id)
            """,
            reverse_sql="ALTER TABLE tickets_ticket DROP CONSTRAINT ticket_assignee_in_team",
        )
    ]
