"""Notices. Imported by this app and the audit only."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _


class Why(models.TextChoices):
    """Why this person got it."""

    ASSIGNEE = "ASSIGNEE", _("You are responsible for this ticket.")
    TEAM_ADMIN = (
        "TEAM_ADMIN",
        _("Nobody is responsible for this ticket and you administer the team."),
    )


class ReminderNotification(models.Model):
    """One reminder for one person. Keeps ids and values; the words are made when it is shown."""

    ticket = models.ForeignKey("tickets.Ticket", models.PROTECT, related_name="+", db_index=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False
    )
    reminder_revision = models.PositiveIntegerField()
    why = models.CharField(max_length=10, choices=Why.choices)
    note = models.CharField(max_length=200, blank=True)
    due_at = models.DateTimeField()
    # From `due_at` to just before the commit, in milliseconds; never negative: nothing fires early.
    late_ms = models.PositiveBigIntegerField()
    created_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True, blank=True)
    # Somebody resolved or closed the ticket, so there is nothing left to do.
    handled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("reminder notification")
        verbose_name_plural = _("reminder notifications")
        constraints: ClassVar = [
            # Also serves "the notices of this ticket and revision".
            models.UniqueConstraint(
                fields=["ticket", "reminder_revision", "user"],
                name="one_notice_per_intent_and_person",
            ),
            models.CheckConstraint(condition=Q(why__in=Why.values), name="notice_why_known"),
        ]
        indexes: ClassVar = [
            # The inbox: own, newest first.
            models.Index(F("user"), F("created_at").desc(), F("id").desc(), name="notice_inbox"),
            # The audit: what was delivered since it last looked.
            models.Index(fields=["created_at"], name="notice_by_creation"),
            # The bell on every page: how many are unread.
            models.Index(
                fields=["user"],
                condition=Q(read_at__isnull=True, handled_at__isnull=True),
                name="notice_unread",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.ticket_id} r{self.reminder_revision} → {self.user_id}"
