"""The shapes of teams, members and tickets in the API: what comes in and what goes out."""

from typing import Any, Final

from rest_framework import serializers

from helpdesk.api.fields import (
    Choice,
    Flag,
    Input,
    Instant,
    Milliseconds,
    Output,
    Text,
    Whole,
    some_text,
)
from helpdesk.api.pages import PageQuery, page_of
from helpdesk.api.schema import ProblemSerializer, example
from tickets.listing import Order
from tickets.services.checks import MAX_TEXT
from tickets.states import REMINDER_MINUTES, EventKind, Priority, Role, Status


class VersionInput(Input):
    version = Whole(
        required=False, help_text="The version you have seen; here, or as an ETag in `If-Match`."
    )


# --- People -----------------------------------------------------------------------------------------
class PersonSerializer(Output):
    id = serializers.IntegerField(source="pk")
    username = serializers.CharField()
    name = serializers.CharField(source="display_name")


class TeamSerializer(Output):
    slug = serializers.CharField(help_text="Names the team in addresses.")
    name = serializers.CharField()


@example({"id": 7, "user": {"id": 3, "username": "agent1", "name": "Tom Becker"}, "role": "AGENT"})
class MemberSerializer(Output):
    """Somebody's membership of a team. Tickets are assigned to its `id`."""

    id = serializers.IntegerField(source="pk")
    user = PersonSerializer()
    role = serializers.ChoiceField(choices=Role.choices)


MemberPage = page_of(MemberSerializer)


@example({"username": "agent3", "role": "AGENT"})
class NewMemberInput(Input):
    username = some_text(150, help_text="Of an active account.")
    role = Choice(choices=Role.choices)


@example({"role": "ADMIN"})
class RoleInput(Input):
    role = Choice(choices=Role.choices)


class OwnMembershipSerializer(Output):
    id = serializers.IntegerField(source="pk")
    team = TeamSerializer()
    role = serializers.ChoiceField(choices=Role.choices)


@example(
    {
        "user": {"id": 3, "username": "agent1", "name": "Tom Becker"},
        "time_zone": "Europe/Berlin",
        "is_superuser": False,
        "memberships": [{"id": 7, "team": {"slug": "support", "name": "Support"}, "role": "AGENT"}],
        "unread": 2,
    }
)
class MeSerializer(Output):
    user = PersonSerializer()
    time_zone = serializers.CharField(help_text="For showing; the API speaks UTC.")
    is_superuser = serializers.BooleanField(help_text="Acts as an administrator of every team.")
    memberships = OwnMembershipSerializer(many=True)
    unread = serializers.IntegerField(help_text="Notifications that are neither read nor handled.")


@example({"username": "agent1", "password": "demo"})
class SignInInput(Input):
    username = some_text(150)
    password = Text(min_length=1, max_length=500, trim_whitespace=False)


@example({"token": "3f9d0c…", "expires_at": "2027-01-04T09:30:00Z"})
class TokenSerializer(Output):
    token = serializers.CharField(help_text="Shown this once; only its hash is kept.")
    expires_at = Instant()


# --- Tickets ----------------------------------------------------------------------------------------
_TICKET: Final[dict[str, Any]] = {
    "number": 12,
    "title": "Printer on fire",
    "description": "It burns.",
    "status": "OPEN",
    "priority": "NORMAL",
    "creator": {"id": 5, "username": "customer1", "name": "Priya Raman"},
    "created_at": "2026-12-05T09:00:00Z",
    "resolved_at": None,
    "closed_at": None,
    "version": 3,
    "reminder_revision": 1,
    "due_at": "2026-12-05T10:30:00Z",
    "assignee": {
        "id": 7,
        "user": {"id": 3, "username": "agent1", "name": "Tom Becker"},
        "role": "AGENT",
    },
    "updated_at": "2026-12-05T09:30:00Z",
}
_REMINDER: Final[dict[str, Any]] = {
    "due_at": "2026-12-05T10:30:00Z",
    "set_by": "Tom Becker",
    "note": "Call back",
    "is_overdue": False,
    "would_reach": [{"user": 3, "name": "Tom Becker", "why": "ASSIGNEE"}],
    "task": 40,
    "fired": None,
}
# What customers do not get: no trace of reminders, of who is responsible, or of changes they do not see.
STAFF_ONLY: Final = (
    "version",
    "reminder_revision",
    "due_at",
    "assignee",
    "updated_at",
    "reminder",
)


@example(_TICKET)
class TicketSerializer(Output):
    """A ticket. What only staff see is left out for customers."""

    number = serializers.IntegerField(help_text="In its team.")
    title = serializers.CharField()
    description = serializers.CharField()
    status = serializers.ChoiceField(choices=Status.choices)
    priority = serializers.ChoiceField(choices=Priority.choices)
    creator = PersonSerializer()
    created_at = Instant()
    resolved_at = Instant(allow_null=True)
    closed_at = Instant(allow_null=True)
    version = serializers.IntegerField(
        required=False, help_text="Staff only. Goes up with every change; also the ETag."
    )
    reminder_revision = serializers.IntegerField(
        required=False, help_text="Staff only. Goes up when the reminder is set or cancelled."
    )
    due_at = Instant(
        required=False,
        allow_null=True,
        help_text="Staff only. When whoever is responsible then is reminded; null: never.",
    )
    assignee = MemberSerializer(
        required=False, allow_null=True, help_text="Staff only. Null: nobody."
    )
    updated_at = Instant(required=False, help_text="Staff only.")

    def to_representation(self, instance: Any) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(instance)
        if not self.context["viewer"].is_staff:
            for name in STAFF_ONLY:
                shown.pop(name, None)
        return shown


class RecipientSerializer(Output):
    user = serializers.IntegerField(source="user_id")
    name = serializers.CharField()
    why = serializers.CharField(help_text="ASSIGNEE, or TEAM_ADMIN if nobody is responsible.")


class FiringSerializer(Output):
    """A reminder that was sent for the present intent."""

    at = Instant()
    late_ms = Milliseconds(source="late", help_text="From due to sent, in milliseconds.")
    names = serializers.ListField(child=serializers.CharField(), help_text="Whom it reached.")
    proven = serializers.BooleanField(
        help_text="The task's evidence agrees with the rows it names."
    )


class ReminderSerializer(Output):
    """What is planned, and what became of it."""

    due_at = Instant(allow_null=True)
    set_by = serializers.CharField(help_text="Empty: the default deadline.")
    note = serializers.CharField()
    is_overdue = serializers.BooleanField()
    would_reach = RecipientSerializer(
        source="recipients", many=True, help_text="If it fired now. Asked again when it does."
    )
    task = serializers.SerializerMethodField(help_text="The id of its task; null if there is none.")
    fired = FiringSerializer(allow_null=True)

    def get_task(self, panel: Any) -> int | None:
        return panel.task.id if panel.task else None


@example({**_TICKET, "reminder": _REMINDER})
class TicketDetailSerializer(TicketSerializer):
    """A ticket with its reminder."""

    reminder = ReminderSerializer(required=False, help_text="Staff only.")


TicketPage = page_of(TicketSerializer)


class TicketQuery(PageQuery):
    """Filters; those that are given all have to hold."""

    status = serializers.ListField(
        child=Choice(choices=Status.choices),
        required=False,
        max_length=len(Status),
        help_text="May be repeated: any of.",
    )
    priority = serializers.ListField(
        child=Choice(choices=Priority.choices),
        required=False,
        max_length=len(Priority),
        help_text="May be repeated: any of.",
    )
    assignee = serializers.RegexField(
        r"^(me|none|[0-9]{1,18})$",
        required=False,
        help_text="`me`, `none`, or a membership's id. Staff only.",
    )
    creator = serializers.RegexField(
        r"^(me|[0-9]{1,18})$", required=False, help_text="`me`, or a user's id."
    )
    overdue = Flag(required=False, allow_null=True, default=None, help_text="Staff only.")
    due_after = Instant(required=False, help_text="Due then or later. Staff only.")
    due_before = Instant(required=False, help_text="Due then or earlier. Staff only.")
    updated_since = Instant(required=False, help_text="Changed then or later. Staff only.")
    search = some_text(
        200, required=False, help_text="In title and description; digits also as a number."
    )
    order = Choice(
        choices=Order.choices,
        required=False,
        default=Order.NUMBER_DESC.value,
        help_text="By `updated_at` the list is as it was when its first page was read. Staff only.",
    )


@example({"title": "Printer on fire", "description": "It burns.", "priority": "HIGH"})
class NewTicketInput(Input):
    title = some_text(200)
    description = some_text(MAX_TEXT)
    priority = Choice(choices=Priority.choices, required=False, default=Priority.NORMAL.value)


@example({"title": "Printer burns", "version": 3})
class EditInput(VersionInput):
    """At least one of title, description and priority."""

    title = some_text(200, required=False)
    description = some_text(MAX_TEXT, required=False)
    priority = Choice(choices=Priority.choices, required=False)


@example({"minutes": 90, "note": "Call back", "version": 3})
class ScheduleInput(VersionInput):
    minutes = Whole(
        allow_null=True,
        min_value=REMINDER_MINUTES.start,
        max_value=REMINDER_MINUTES.stop - 1,
        help_text="From now; null cancels the reminder.",
    )
    note = Text(
        max_length=200,
        required=False,
        allow_blank=True,
        default="",
        help_text="The reminder will carry it.",
    )


@example({"to": "RESOLVED", "note": "Extinguished.", "version": 3})
class TransitionInput(VersionInput):
    to = Choice(choices=Status.choices)
    note = Text(
        max_length=2000,
        required=False,
        allow_blank=True,
        default="",
        help_text="Needed to resolve and to reopen.",
    )


@example({"membership": 7, "version": 3})
class AssignInput(VersionInput):
    membership = Whole(
        allow_null=True, help_text="Of a member of the staff; null: nobody is responsible."
    )


@example(
    {
        "type": "urn:helpdesk:version-conflict",
        "title": "Conflict",
        "status": 409,
        "detail": "Somebody changed this ticket after you opened it. Look at it again before you decide.",
        "current_version": 4,
        "ticket": {**_TICKET, "version": 4, "reminder": _REMINDER},
    },
    refusal=409,
)
class TicketConflictSerializer(ProblemSerializer):
    """Somebody was faster, or the status does not allow it. With the ticket as it is now, to decide again."""

    current_version = serializers.IntegerField()
    ticket = TicketDetailSerializer()
    blockers = serializers.ListField(
        child=serializers.IntegerField(),
        required=False,
        help_text="Numbers of the open tickets that this one waits for.",
    )


# --- Conversation -----------------------------------------------------------------------------------
_COMMENT: Final[dict[str, Any]] = {
    "id": 31,
    "author": {"id": 3, "username": "agent1", "name": "Tom Becker"},
    "body": "Is it still burning?",
    "internal": False,
    "created_at": "2026-12-05T09:30:00Z",
}


@example(_COMMENT)
class CommentSerializer(Output):
    id = serializers.IntegerField(source="pk")
    author = PersonSerializer()
    body = serializers.CharField()
    internal = serializers.BooleanField(help_text="A note for the team; customers do not see it.")
    created_at = Instant()


@example({**_COMMENT, "ticket": {**_TICKET, "reminder": _REMINDER}})
class NewCommentSerializer(CommentSerializer):
    """The comment, and the ticket as it is now."""

    ticket = TicketDetailSerializer()


CommentPage = page_of(CommentSerializer)


@example({"body": "Is it still burning?", "internal": False})
class CommentInput(Input):
    body = some_text(MAX_TEXT)
    internal = Flag(required=False, default=False, help_text="Staff only.")


@example(
    {
        "id": 77,
        "kind": "RESOLVED",
        "text": "Resolved",
        "note": "Extinguished.",
        "actor": "Tom Becker",
        "at": "2026-12-05T09:40:00Z",
    }
)
class EventSerializer(Output):
    """Something that happened to the ticket."""

    id = serializers.IntegerField()
    kind = serializers.ChoiceField(choices=EventKind.choices)
    text = serializers.CharField(help_text="In the reader's language.")
    note = serializers.CharField(help_text="Why, in the words of who did it. Staff only.")
    actor = serializers.CharField(source="who", help_text="Who; empty: the system.")
    at = Instant()


EventPage = page_of(EventSerializer)


@example(
    {"direction": "BLOCKED_BY", "number": 9, "title": "No fire extinguisher", "status": "OPEN"}
)
class LinkSerializer(Output):
    """A ticket at the other end of a link."""

    direction = serializers.ChoiceField(
        choices=[("BLOCKED_BY", "blocked by"), ("BLOCKS", "blocks")],
        help_text="BLOCKED_BY: the ticket waits for this one. BLOCKS: this one waits for the ticket.",
    )
    number = serializers.IntegerField()
    title = serializers.CharField()
    status = serializers.ChoiceField(choices=Status.choices)


@example({"results": [LinkSerializer.example]})
class LinksSerializer(Output):
    results = LinkSerializer(many=True)


@example({"blocker": 9, "version": 3})
class LinkInput(VersionInput):
    blocker = Whole(min_value=1, help_text="The number of the ticket to wait for.")
