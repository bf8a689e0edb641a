"""The shapes of notifications in the API."""

from rest_framework import serializers

from helpdesk.api.fields import Input, Instant, Milliseconds, Output, Text
from helpdesk.api.pages import LONGEST_CURSOR, page_of
from helpdesk.api.schema import example


@example(
    {
        "id": 9,
        "team": "support",
        "ticket": 12,
        "title": "Printer on fire",
        "why": "ASSIGNEE",
        "note": "Call back",
        "due_at": "2026-12-05T10:30:00Z",
        "late_ms": 83,
        "created_at": "2026-12-05T10:30:00.083Z",
        "read_at": None,
        "handled_at": None,
    }
)
class NotificationSerializer(Output):
    """A reminder that reached you."""

    id = serializers.IntegerField()
    team = serializers.CharField(source="team_slug", help_text="The team's slug.")
    ticket = serializers.IntegerField(source="ticket_number", help_text="The ticket's number.")
    title = serializers.CharField(source="ticket_title")
    why = serializers.ChoiceField(
        source="why_code",
        choices=[("ASSIGNEE", "responsible"), ("TEAM_ADMIN", "nobody is responsible")],
        help_text="ASSIGNEE: you are responsible. TEAM_ADMIN: nobody is, and you administer the team.",
    )
    note = serializers.CharField()
    due_at = Instant()
    late_ms = Milliseconds(source="late", help_text="From due to sent, in milliseconds.")
    created_at = Instant()
    read_at = Instant(allow_null=True)
    handled_at = Instant(
        allow_null=True, help_text="When the ticket was resolved or closed: nothing is left to do."
    )


NotificationPage = page_of(NotificationSerializer)


class NotificationQuery(Input):
    cursor = Text(
        required=False, max_length=LONGEST_CURSOR, help_text="From the `next` of the page before."
    )


@example({"read": 2})
class ReadAllSerializer(Output):
    read = serializers.IntegerField(help_text="How many were unread.")
