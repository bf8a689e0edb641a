"""Delete what is older than it is kept."""

from typing import Any

from django.core.management.base import BaseCommand

from reminders.audit.prune import prune


class Command(BaseCommand):
    help = "Delete task history, audit runs and closed findings older than AUDIT_KEEP_DAYS. Beat does it every hour."

    def handle(self, **_options: Any) -> None:
        deleted = prune()
        self.stdout.write(", ".join(f"{count} {what}" for what, count in deleted.items()))
