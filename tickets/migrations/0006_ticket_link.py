"""Links between tickets of one team, and their events.

The kinds of events are validated in the next migration, so that no lock is held for it. Taking this
back fails while events of the new kinds exist: a version without its event would be worse.
"""

import django.db.models.deletion
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    dependencies = [("tickets", "0005_ticket_team_and_id")]

    operations = [
        migrations.CreateModel(
            name="TicketLink",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created_at", models.DateTimeField()),
                (
                    "blocker",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="blocked_links",
                        to="tickets.ticket",
                        verbose_name="blocker",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tickets.team",
                    ),
                ),
                (
                    "ticket",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="blocker_links",
                        to="tickets.ticket",
                    ),
                ),
            ],
            options={
                "verbose_name": "ticket link",
                "verbose_name_plural": "ticket links",
                "ordering": ("id",),
                "constraints": [
                    models.UniqueConstraint(fields=["ticket", "blocker"], name="ticket_link_once"),
                    models.CheckConstraint(
                        condition=~Q(ticket=F("blocker")), name="ticket_link_not_to_itself"
                    ),
                ],
                "indexes": [models.Index(fields=["blocker"], name="ticket_link_by_blocker")],
            },
        ),
        # Both tickets are the link's team's own. Immediate, as ticket_assignee_in_team is.
        migrations.RunSQL(
            sql="""
                ALTER TABLE tickets_ticketlink
                ADD CONSTRAINT ticket_link_ticket_in_team
                FOREIGN KEY (team_id, ticket_id) REFERENCES tickets_ticket (team_id, id),
                ADD CONSTRAINT ticket_link_blocker_in_team
                FOREIGN KEY (team_id, blocker_id) REFERENCES tickets_ticket (team_id, id)
            """,
            reverse_sql="""
                ALTER TABLE tickets_ticketlink
                DROP CONSTRAINT ticket_link_ticket_in_team,
                DROP CONSTRAINT ticket_link_blocker_in_team
            """,
        ),
        migrations.RemoveConstraint(model_name="ticketevent", name="event_kind_known"),
        migrations.AlterField(
            model_name="ticketevent",
            name="kind",
            field=models.CharField(
                choices=[
                    ("CREATED", "Created"),
                    ("EDITED", "Edited"),
                    ("REPLIED", "Replied"),
                    ("NOTED", "Internal note"),
                    ("ASSIGNED", "Assigned"),
                    ("UNASSIGNED", "Unassigned"),
                    ("STARTED", "Started"),
                    ("RESOLVED", "Resolved"),
                    ("CLOSED", "Closed"),
                    ("REOPENED", "Reopened"),
                    ("BLOCKED", "Blocker added"),
                    ("UNBLOCKED", "Blocker removed"),
                    ("REMINDER_SCHEDULED", "Reminder changed"),
                    ("TIMEOUT_REMINDED", "Reminder sent"),
                ],
                max_length=20,
            ),
        ),
        AddConstraintNotValid(
            model_name="ticketevent",
            constraint=models.CheckConstraint(
                condition=Q(
                    kind__in=[
                        "CREATED",
                        "EDITED",
                        "REPLIED",
                        "NOTED",
                        "ASSIGNED",
                        "UNASSIGNED",
                        "STARTED",
                        "RESOLVED",
                        "CLOSED",
                        "REOPENED",
                        "BLOCKED",
                        "UNBLOCKED",
                        "REMINDER_SCHEDULED",
                        "TIMEOUT_REMINDED",
                    ]
                ),
                name="event_kind_known",
            ),
        ),
    ]
