"""What takes a while on a long history, done without blocking writes."""

from django.contrib.postgres.operations import AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("reminders", "0002_audit")]

    operations = [
        ValidateConstraint("tasktransition", "transition_cause_known"),
        AddIndexConcurrently(
            "task",
            models.Index(
                condition=models.Q(finished_at__isnull=False),
                fields=["finished_at"],
                name="task_by_finish",
            ),
        ),
        AddIndexConcurrently(
            "task",
            models.Index(condition=models.Q(status="FAILED"), fields=["team"], name="task_failed"),
        ),
    ]
