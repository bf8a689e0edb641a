"""Teams, their members, and tickets with their conversation and history.

Rows change only through `tickets.services` and `reminders.processor`; every rule that SQL can state
is a named constraint here, so that no script and no bug can write what the services would refuse.

An index is here because a query needs it, and its comment names the query. Foreign keys to people have
none: accounts are deactivated, never deleted. Others have none where a constraint or index starts
with the same column.
"""

import zoneinfo
from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from tickets.states import EventKind, Priority, Role, Status


def validate_time_zone(value: str) -> None:
    if value not in zoneinfo.available_timezones():
        raise ValidationError(_("“%(value)s” is not a time zone."), params={"value": value})


class User(AbstractUser):
    """A person. Belongs to teams through memberships; staff of a team is not `is_staff` of the site."""

    time_zone = models.CharField(
        _("time zone"),
        max_length=64,
        default="UTC",
        validators=[validate_time_zone],
        help_text=_("Times are shown in this zone, for example Asia/Shanghai."),
    )

    class Meta(AbstractUser.Meta):
        pass

    @property
    def display_name(self) -> str:
        return self.get_full_name() or self.username


class Team(models.Model):
    """A helpdesk team. Its row is the lock that every write on its tickets takes first."""

    name = models.CharField(_("name"), max_length=100)
    slug = models.SlugField(_("short name"), max_length=50, unique=True)
    # Counted up under the team lock, so numbers have no gaps and no repeats.
    last_ticket_number = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(editable=False, db_default=Now())

    class Meta:
        verbose_name = _("team")
        verbose_name_plural = _("teams")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person's role in one team. Removing somebody deletes the row, so that nothing can forget to check."""

    team = models.ForeignKey(Team, models.PROTECT, related_name="memberships", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="memberships")
    role = models.CharField(_("role"), max_length=10, choices=Role.choices)
    created_at = models.DateTimeField(editable=False, db_default=Now())

    class Meta:
        verbose_name = _("membership")
        verbose_name_plural = _("memberships")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["team", "user"], name="membership_once_per_team"),
            # The target of ticket_assignee_in_team (see the first migration).
            models.UniqueConstraint(fields=["team", "id"], name="membership_team_and_id"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="membership_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user.display_name} ({self.get_role_display()})"


class MembershipChange(models.Model):
    """Append-only history of who had which role when; a membership's row is gone once the person has left.

    Written by `tickets.services.members` together with the change, under the team lock.
    """

    team = models.ForeignKey(Team, models.PROTECT, related_name="+", db_index=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False
    )
    # Null: the person left.
    role = models.CharField(_("role"), max_length=10, choices=Role.choices, null=True)  # noqa: DJ001
    # Null when the system acted.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", db_index=False
    )
    at = models.DateTimeField()

    class Meta:
        verbose_name = _("membership change")
        verbose_name_plural = _("membership changes")
        ordering = ("id",)
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(role__isnull=True) | Q(role__in=Role.values),
                name="membership_change_role_known",
            ),
        ]
        indexes: ClassVar = [
            # "Which role did this person have in this team at that time?": the audit.
            models.Index(F("team"), F("user"), F("id").desc(), name="membership_history"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.team_id}: {self.role or 'left'}"


class Ticket(models.Model):
    """A request of a customer, with the intent to remind whoever is responsible for it at `due_at`.

    `version` rises with every change; a caller who saw an older one is refused.
    `reminder_revision` rises when the reminder intent changes; a task of an older one is skipped.
    `due_at` is the only answer to "when"; null means there is nothing to remind of.
    """

    team = models.ForeignKey(Team, models.PROTECT, related_name="tickets", db_index=False)
    number = models.PositiveIntegerField(_("number"))
    title = models.CharField(_("title"), max_length=200)
    description = models.TextField(_("description"))
    status = models.CharField(
        _("status"), max_length=12, choices=Status.choices, default=Status.OPEN
    )
    priority = models.CharField(
        _("priority"), max_length=8, choices=Priority.choices, default=Priority.NORMAL
    )
    creator = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False
    )
    assignee = models.ForeignKey(
        Membership, models.PROTECT, null=True, blank=True, related_name="assigned_tickets"
    )
    version = models.PositiveIntegerField(default=0)
    reminder_revision = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField(_("due"), null=True, blank=True)
    reminder_note = models.CharField(max_length=200, blank=True)
    # Who asked for the present due time; null for the default deadline of a new ticket.
    reminder_set_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
    )
    resolved_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        verbose_name = _("ticket")
        verbose_name_plural = _("tickets")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["team", "number"], name="ticket_number_once_per_team"),
            # The target of ticket_link_ticket_in_team and ticket_link_blocker_in_team.
            models.UniqueConstraint(fields=["team", "id"], name="ticket_team_and_id"),
            models.CheckConstraint(
                condition=Q(status__in=Status.values), name="ticket_status_known"
            ),
            models.CheckConstraint(
                condition=Q(priority__in=Priority.values), name="ticket_priority_known"
            ),
            models.CheckConstraint(
                condition=Q(due_at__isnull=True) | Q(status__in=[Status.OPEN, Status.IN_PROGRESS]),
                name="ticket_due_only_while_active",
            ),
            models.CheckConstraint(
                condition=Q(resolved_at__isnull=False, status__in=[Status.RESOLVED, Status.CLOSED])
                | Q(resolved_at__isnull=True, status__in=[Status.OPEN, Status.IN_PROGRESS]),
                name="ticket_resolved_at_with_status",
            ),
            models.CheckConstraint(
                condition=Q(closed_at__isnull=False, status=Status.CLOSED)
                | (Q(closed_at__isnull=True) & ~Q(status=Status.CLOSED)),
                name="ticket_closed_at_with_status",
            ),
        ]
        indexes: ClassVar = [
            # The list of a team, last activity first: selectors.ticket_list().
            models.Index(
                F("team"), F("updated_at").desc(), F("id").desc(), name="ticket_by_activity"
            ),
            # "Overdue" and "due" in the list: few rows have a due time, whatever is stored.
            models.Index(
                fields=["team", "due_at"], condition=Q(due_at__isnull=False), name="ticket_by_due"
            ),
            # The audit: what changed since it last looked.
            models.Index(fields=["updated_at"], name="ticket_by_change"),
            # A customer's own tickets.
            models.Index(F("creator"), F("team"), F("number").desc(), name="ticket_by_creator"),
        ]

    def __str__(self) -> str:
        return f"#{self.number} {self.title}"

    @property
    def is_active(self) -> bool:
        return self.status in (Status.OPEN, Status.IN_PROGRESS)


class TicketLink(models.Model):
    """A ticket that cannot be finished before another one of its team, the blocker.

    Stays when either is resolved: a blocker that is reopened is waited for again. So circles are
    refused whatever the statuses. Written only by `tickets.services.linking`, under the team lock.
    """

    # Repeats the tickets' own team, so that foreign keys over both columns keep a link inside it.
    team = models.ForeignKey(Team, models.PROTECT, related_name="+", db_index=False)
    ticket = models.ForeignKey(Ticket, models.PROTECT, related_name="blocker_links", db_index=False)
    blocker = models.ForeignKey(
        Ticket,
        models.PROTECT,
        verbose_name=_("blocker"),
        related_name="blocked_links",
        db_index=False,
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False
    )
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("ticket link")
        verbose_name_plural = _("ticket links")
        ordering = ("id",)
        constraints: ClassVar = [
            # Also serves "the blockers of a ticket" and each step of the search for a circle.
            models.UniqueConstraint(fields=["ticket", "blocker"], name="ticket_link_once"),
            models.CheckConstraint(
                condition=~Q(ticket=F("blocker")), name="ticket_link_not_to_itself"
            ),
        ]
        indexes: ClassVar = [
            # The other direction, what a ticket blocks: selectors.blocks().
            models.Index(fields=["blocker"], name="ticket_link_by_blocker"),
        ]

    def __str__(self) -> str:
        return f"{self.ticket_id} waits for {self.blocker_id}"


class Comment(models.Model):
    """A public reply or an internal note."""

    ticket = models.ForeignKey(Ticket, models.PROTECT, related_name="comments")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False
    )
    body = models.TextField(_("text"))
    internal = models.BooleanField(_("internal"), default=False)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("comment")
        verbose_name_plural = _("comments")
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return f"{self.ticket} · {self.pk}"


class TicketEvent(models.Model):
    """One change of a ticket. Written only by `tickets.history`, one for each version, never changed.

    `data` holds ids and values; sentences are made where they are shown, in the reader's language
    and zone. `reason` is the person's own note, or for a reminder what was set.
    """

    ticket = models.ForeignKey(Ticket, models.PROTECT, related_name="events", db_index=False)
    kind = models.CharField(max_length=20, choices=EventKind.choices)
    version = models.PositiveIntegerField()
    reminder_revision = models.PositiveIntegerField()
    # Null when the system acted; the name is kept as it was.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
    )
    actor_name = models.CharField(max_length=300)
    reason = models.TextField(blank=True)
    data = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("ticket event")
        verbose_name_plural = _("ticket events")
        ordering = ("ticket", "version")
        constraints: ClassVar = [
            # Also serves "the history of a ticket" and "the event of this version".
            models.UniqueConstraint(fields=["ticket", "version"], name="one_event_per_version"),
            models.CheckConstraint(condition=Q(kind__in=EventKind.values), name="event_kind_known"),
            # A second reminder for one intent cannot be written, whatever went wrong above.
            models.UniqueConstraint(
                fields=["ticket", "reminder_revision"],
                condition=Q(kind=EventKind.TIMEOUT_REMINDED),
                name="reminded_once_per_revision",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.ticket} v{self.version} {self.kind}"


class Receipt(models.Model):
    """The answer to a request that created something, kept so that the same request gets it again.

    Written by `tickets.receipts` in the transaction that created the thing: there is both or neither.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False
    )
    # Chosen by the client.
    key = models.CharField(max_length=200)
    # Of method, address and body: the same key for something else is a mistake.
    fingerprint = models.CharField(max_length=64)
    answer = models.JSONField()
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("receipt")
        verbose_name_plural = _("receipts")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "key"], name="receipt_once_per_key"),
        ]
        indexes: ClassVar = [
            # Forgetting the old ones: receipts.forget().
            models.Index(fields=["created_at"], name="receipt_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.key}"
