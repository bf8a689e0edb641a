"""The checks. Importing this package puts all of them on the list, in this order."""

from reminders.audit.checks import queue, proof, history, broker  # noqa: I001  the order in which they run

__all__ = ["broker", "history", "proof", "queue"]
