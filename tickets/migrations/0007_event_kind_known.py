"""What takes a while on a long history, done without blocking writes."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("tickets", "0006_ticket_link")]

    operations = [ValidateConstraint("ticketevent", "event_kind_known")]
