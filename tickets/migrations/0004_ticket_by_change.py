"""An index for the audit, built without blocking writes."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("tickets", "0003_membership_history")]

    operations = [
        AddIndexConcurrently("ticket", models.Index(fields=["updated_at"], name="ticket_by_change"))
    ]
