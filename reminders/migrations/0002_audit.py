"""Audit runs and findings; the cause PROVEN. Validated in the next migration, so that no lock is held for it."""

import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.comparison
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reminders", "0001_initial"),
        ("tickets", "0003_membership_history"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "trigger",
                    models.CharField(
                        choices=[
                            ("BEAT", "Period"),
                            ("BOUNDARY", "Completed tasks"),
                            ("COMMAND", "Command"),
                            ("PERSON", "Person"),
                        ],
                        max_length=8,
                        verbose_name="trigger",
                    ),
                ),
                ("codes", models.JSONField(default=list)),
                ("full", models.BooleanField(default=False)),
                ("started_at", models.DateTimeField(verbose_name="started")),
                ("finished_at", models.DateTimeField(null=True, verbose_name="finished")),
                (
                    "duration_ms",
                    models.PositiveIntegerField(null=True, verbose_name="duration in ms"),
                ),
                ("query_ms", models.PositiveIntegerField(null=True, verbose_name="in queries, ms")),
                ("found", models.PositiveIntegerField(default=0, verbose_name="found")),
                ("opened", models.PositiveIntegerField(default=0, verbose_name="new")),
                ("repaired", models.PositiveIntegerField(default=0, verbose_name="repaired")),
                ("failed", models.PositiveIntegerField(default=0, verbose_name="failed repairs")),
                ("errors", models.JSONField(default=dict)),
                ("broker", models.JSONField(default=dict)),
                ("cursors", models.JSONField(default=dict)),
            ],
            options={
                "verbose_name": "audit run",
                "verbose_name_plural": "audit runs",
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="Finding",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("code", models.CharField(max_length=40, verbose_name="check")),
                (
                    "severity",
                    models.CharField(
                        choices=[("INFO", "Note"), ("WARNING", "Warning"), ("ERROR", "Error")],
                        max_length=7,
                        verbose_name="severity",
                    ),
                ),
                (
                    "verdict",
                    models.CharField(
                        choices=[("CERTAIN", "Certain"), ("AMBIGUOUS", "Ambiguous")],
                        max_length=9,
                        verbose_name="verdict",
                    ),
                ),
                (
                    "subject_kind",
                    models.CharField(
                        choices=[
                            ("TASK", "Task"),
                            ("TICKET", "Ticket"),
                            ("NOTICE", "Notice"),
                            ("BROKER", "Broker"),
                        ],
                        max_length=6,
                        verbose_name="subject",
                    ),
                ),
                ("subject_id", models.BigIntegerField()),
                ("evidence", models.JSONField()),
                ("doubts", models.JSONField(default=list)),
                ("since", models.DateTimeField(verbose_name="since")),
                ("first_seen", models.DateTimeField(verbose_name="first seen")),
                ("last_seen", models.DateTimeField(verbose_name="last seen")),
                ("closed_at", models.DateTimeField(null=True, verbose_name="gone")),
                (
                    "dwell",
                    models.GeneratedField(
                        db_persist=True,
                        expression=django.db.models.expressions.CombinedExpression(
                            django.db.models.functions.comparison.Coalesce(
                                models.F("closed_at"), models.F("last_seen")
                            ),
                            "-",
                            models.F("since"),
                        ),
                        output_field=models.DurationField(),
                        verbose_name="dwell time",
                    ),
                ),
                ("seen", models.PositiveIntegerField(default=1, verbose_name="seen")),
                (
                    "action",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("COMPLETED", "Completed from its proof"),
                            ("ENDED", "Ended as skipped"),
                            ("PLANNED", "Reminder planned"),
                            ("REQUEUED", "Put back in the queue"),
                            ("PUBLISHED", "Published again"),
                            ("NOTHING", "Nothing: it was gone when looked at again"),
                            ("REFUSED", "Nothing: in doubt when looked at again"),
                            ("FAILED", "The repair failed"),
                        ],
                        max_length=9,
                        verbose_name="action",
                    ),
                ),
                ("action_detail", models.TextField(blank=True)),
                ("acted_at", models.DateTimeField(null=True)),
                (
                    "handling",
                    models.CharField(
                        choices=[
                            ("OPEN", "Open"),
                            ("ACKNOWLEDGED", "Acknowledged"),
                            ("RESOLVED", "Resolved"),
                        ],
                        default="OPEN",
                        max_length=12,
                        verbose_name="handling",
                    ),
                ),
                ("handled_at", models.DateTimeField(null=True)),
                ("note", models.TextField(blank=True, verbose_name="note")),
            ],
            options={
                "verbose_name": "finding",
                "verbose_name_plural": "findings",
                "ordering": ("-id",),
            },
        ),
        migrations.RemoveConstraint(
            model_name="tasktransition",
            name="transition_cause_known",
        ),
        migrations.AlterField(
            model_name="tasktransition",
            name="cause",
            field=models.CharField(
                choices=[
                    ("PLANNED", "Planned"),
                    ("CLAIMED", "Claimed by a worker"),
                    ("TAKEN_OVER", "Taken over by another worker"),
                    ("NOT_DUE", "Called before it was due"),
                    ("FIRED", "Reminder sent"),
                    ("SKIPPED", "Skipped"),
                    ("ATTEMPT_FAILED", "Attempt failed"),
                    ("GAVE_UP", "Gave up after the last attempt"),
                    ("LEASE_EXPIRED", "Lease expired"),
                    ("RETRIED", "Retried by a person"),
                    ("PROVEN", "Completed from its proof"),
                    ("ENDED", "Ended by the audit"),
                ],
                max_length=16,
            ),
        ),
        AddConstraintNotValid(
            model_name="tasktransition",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "cause__in",
                        [
                            "PLANNED",
                            "CLAIMED",
                            "TAKEN_OVER",
                            "NOT_DUE",
                            "FIRED",
                            "SKIPPED",
                            "ATTEMPT_FAILED",
                            "GAVE_UP",
                            "LEASE_EXPIRED",
                            "RETRIED",
                            "PROVEN",
                            "ENDED",
                        ],
                    )
                ),
                name="transition_cause_known",
            ),
        ),
        migrations.AddField(
            model_name="auditrun",
            name="actor",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="auditrun",
            name="team",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="tickets.team",
            ),
        ),
        migrations.AddField(
            model_name="finding",
            name="acted_run",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="reminders.auditrun",
            ),
        ),
        migrations.AddField(
            model_name="finding",
            name="handled_by",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="finding",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="reminders.auditrun",
            ),
        ),
        migrations.AddField(
            model_name="finding",
            name="team",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="tickets.team",
            ),
        ),
        migrations.AddConstraint(
            model_name="auditrun",
            constraint=models.CheckConstraint(
                condition=models.Q(("trigger__in", ["BEAT", "BOUNDARY", "COMMAND", "PERSON"])),
                name="audit_trigger_known",
            ),
        ),
        migrations.AddIndex(
            model_name="finding",
            index=models.Index(
                condition=models.Q(("closed_at__isnull", True)),
                fields=["team", "id"],
                name="finding_open",
            ),
        ),
        migrations.AddIndex(
            model_name="finding",
            index=models.Index(
                condition=models.Q(("closed_at__isnull", False)),
                fields=["closed_at"],
                name="finding_by_closing",
            ),
        ),
        migrations.AddConstraint(
            model_name="finding",
            constraint=models.UniqueConstraint(
                condition=models.Q(("closed_at__isnull", True)),
                fields=("code", "subject_kind", "subject_id"),
                name="one_open_finding_per_subject",
            ),
        ),
        migrations.AddConstraint(
            model_name="finding",
            constraint=models.CheckConstraint(
                condition=models.Q(("severity__in", ["INFO", "WARNING", "ERROR"])),
                name="finding_severity_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="finding",
            constraint=models.CheckConstraint(
                condition=models.Q(("verdict__in", ["CERTAIN", "AMBIGUOUS"])),
                name="finding_verdict_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="finding",
            constraint=models.CheckConstraint(
                condition=models.Q(("subject_kind__in", ["TASK", "TICKET", "NOTICE", "BROKER"])),
                name="finding_subject_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="finding",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("acted_at__isnull", True), ("action", "")),
                    models.Q(
                        ("acted_at__isnull", False),
                        (
                            "action__in",
                            [
                                "COMPLETED",
                                "ENDED",
                                "PLANNED",
                                "REQUEUED",
                                "PUBLISHED",
                                "NOTHING",
                                "REFUSED",
                                "FAILED",
                            ],
                        ),
                    ),
                    _connector="OR",
                ),
                name="finding_action_with_its_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="finding",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("handled_at__isnull", True), ("handling", "OPEN")),
                    models.Q(
                        ("handled_at__isnull", False),
                        ("handling__in", ["ACKNOWLEDGED", "RESOLVED"]),
                    ),
                    _connector="OR",
                ),
                name="finding_handling_with_its_time",
            ),
        ),
    ]
