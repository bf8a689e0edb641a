"""Who had which role when. Starts with what is known: the memberships of today, since they were made."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    dependencies = [("tickets", "0002_assignee_in_team")]

    operations = [
        migrations.CreateModel(
            name="MembershipChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("ADMIN", "Administrator"),
                            ("AGENT", "Agent"),
                            ("CUSTOMER", "Customer"),
                        ],
                        max_length=10,
                        null=True,
                        verbose_name="role",
                    ),
                ),
                ("at", models.DateTimeField()),
                (
                    "actor",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
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
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "membership change",
                "verbose_name_plural": "membership changes",
                "ordering": ("id",),
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(role__isnull=True) | Q(role__in=["ADMIN", "AGENT", "CUSTOMER"]),
                        name="membership_change_role_known",
                    )
                ],
                "indexes": [
                    models.Index(F("team"), F("user"), F("id").desc(), name="membership_history")
                ],
            },
        ),
        migrations.RunSQL(
            sql="""
                INSERT INTO tickets_membershipchange (team_id, user_id, role, at)
                SELECT team_id, user_id, role, created_at FROM tickets_membership ORDER BY id
            """,
            reverse_sql=migrations.RunSQL.noop,
        ),
    ]
