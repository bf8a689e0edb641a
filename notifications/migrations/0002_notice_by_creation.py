"""An index for the audit, built without blocking writes."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("notifications", "0001_initial")]

    operations = [
        AddIndexConcurrently(
            "remindernotification",
            models.Index(fields=["created_at"], name="notice_by_creation"),
        )
    ]
