"""Telling one database constraint from another."""

from django.db import IntegrityError


def violates(error: IntegrityError, constraint: str) -> bool:
    """True if `error` comes from the named constraint; any other violation is a bug and must be raised again."""
    diagnostics = getattr(error.__cause__, "diag", None)
    return getattr(diagnostics, "constraint_name", None) == constraint
