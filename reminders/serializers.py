"""The shapes of tasks, findings and audits in the API."""

from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from helpdesk.api.fields import Choice, Flag, Input, Instant, Milliseconds, Output, Text, some_text
from helpdesk.api.pages import PageQuery, page_of
from helpdesk.api.schema import example
from reminders.states import Action, Cause, Handling, Severity, Subject, TaskStatus, Verdict

_TASK: Final[dict[str, Any]] = {
    "id": 40,
    "ticket": 12,
    "status": "COMPLETED",
    "run": 1,
    "reminder_revision": 1,
    "due_at": "2026-12-05T10:30:00Z",
    "available_at": "2026-12-05T10:30:00Z",
    "created_at": "2026-12-05T09:00:00Z",
    "finished_at": "2026-12-05T10:30:00.083Z",
    "attempts": 0,
    "progress": 100,
    "owner": "Priya Raman",
    "summary": "1 person reminded",
    "last_error": "",
}


@extend_schema_field({"type": ["object", "null"], "additionalProperties": {}})
class Evidence(serializers.JSONField):
    """What was read, name by name. For output only."""


@example(_TASK)
class TaskSerializer(Output):
    """A piece of work of the queue: a reminder to come, or one that was sent, skipped or failed."""

    id = serializers.IntegerField()
    ticket = serializers.IntegerField(source="ticket_number", help_text="The ticket's number.")
    status = serializers.ChoiceField(choices=TaskStatus.choices)
    run = serializers.IntegerField(help_text="Goes up when it is put back in the queue.")
    reminder_revision = serializers.IntegerField(
        help_text="Of the ticket when it was planned. For another one it is skipped."
    )
    due_at = Instant(allow_null=True)
    available_at = Instant(allow_null=True, help_text="The next attempt.")
    created_at = Instant()
    finished_at = Instant(allow_null=True)
    attempts = serializers.IntegerField()
    progress = serializers.IntegerField(help_text="0 to 100.")
    owner = serializers.CharField(source="owner_name", help_text="Who asked for it.")
    summary = serializers.CharField(help_text="What it did, in the reader's language.")
    last_error = serializers.CharField()


class TransitionSerializer(Output):
    """One line of a task's history."""

    at = Instant()
    run = serializers.IntegerField()
    from_status = serializers.CharField(source="from_code", help_text="Empty: it was planned.")
    to_status = serializers.ChoiceField(source="to_code", choices=TaskStatus.choices)
    cause = serializers.ChoiceField(source="cause_code", choices=Cause.choices)
    detail = serializers.CharField()
    actor = serializers.CharField(source="actor_name", help_text="Empty: the system.")


@example(
    {
        **_TASK,
        "evidence": {"outcome": "fired", "event": 77, "checksum": "sha256:…"},
        "transitions": [
            {
                "at": "2026-12-05T09:00:00Z",
                "run": 1,
                "from_status": "",
                "to_status": "WAITING",
                "cause": "PLANNED",
                "detail": "",
                "actor": "",
            }
        ],
    }
)
class TaskDetailSerializer(TaskSerializer):
    """A task with its history, and the evidence of what it did."""

    evidence = Evidence(
        help_text="The rows that prove it, with a checksum; null until it is completed."
    )
    transitions = TransitionSerializer(source="history", many=True)


TaskPage = page_of(TaskSerializer)


class TaskQuery(PageQuery):
    status = Choice(choices=TaskStatus.choices, required=False)


@example(
    {
        "id": 4,
        "check": "unexplained",
        "title": "A ticket that its history does not explain",
        "meaning": "Every change of a ticket leaves an event…",
        "severity": "ERROR",
        "verdict": "AMBIGUOUS",
        "subject_kind": "TICKET",
        "subject": 13,
        "ticket": 13,
        "evidence": {"ticket.version": 99, "event.version": 5},
        "doubts": [],
        "since": "2026-12-05T09:00:00Z",
        "dwell_ms": 61846,
        "last_seen": "2026-12-05T09:01:01Z",
        "seen": 2,
        "closed_at": None,
        "action": "",
        "action_detail": "",
        "handling": "OPEN",
        "handled_by": "",
        "note": "",
        "can_repair": False,
    }
)
class FindingSerializer(Output):
    """An inconsistency, with what was read."""

    id = serializers.IntegerField()
    check = serializers.CharField(source="code")
    title = serializers.CharField()
    meaning = serializers.CharField(help_text="What it means, and what a person can do.")
    severity = serializers.ChoiceField(choices=Severity.choices)
    verdict = serializers.ChoiceField(choices=Verdict.choices)
    subject_kind = serializers.ChoiceField(choices=Subject.choices)
    subject = serializers.IntegerField(source="subject_id")
    ticket = serializers.IntegerField(
        source="ticket_number", allow_null=True, help_text="Number of the ticket it is about."
    )
    evidence = Evidence(source="read", help_text="“table.column” and the value that was there.")
    doubts = serializers.ListField(
        child=serializers.CharField(), help_text="Why it is ambiguous, in the reader's language."
    )
    since = Instant()
    dwell_ms = Milliseconds(source="dwell", help_text="How long it has been so.")
    last_seen = Instant()
    seen = serializers.IntegerField(help_text="How many audits saw it.")
    closed_at = Instant(allow_null=True, help_text="Null: it is still there.")
    action = serializers.CharField(
        help_text=f"What was done, one of {', '.join(Action.values)}; empty: nothing yet."
    )
    action_detail = serializers.CharField()
    handling = serializers.ChoiceField(choices=Handling.choices)
    handled_by = serializers.CharField()
    note = serializers.CharField()
    can_repair = serializers.BooleanField()


FindingPage = page_of(FindingSerializer)


class FindingQuery(PageQuery):
    open = Flag(
        required=False, allow_null=True, default=None, help_text="true: still there; false: gone."
    )


@example({"note": "Looking into it."})
class AcknowledgeInput(Input):
    note = Text(max_length=2000, required=False, allow_blank=True, default="")


@example({"note": "The import script of Monday; harmless."})
class ResolveInput(Input):
    note = some_text(2000)


@example({"full": False})
class AuditInput(Input):
    full = Flag(
        required=False,
        default=False,
        help_text="Every stored row, not only what is active and recent. Takes its time.",
    )


@example(
    {
        "run": 12,
        "started_at": "2026-12-05T09:00:00Z",
        "duration_ms": 9.2,
        "rows": 103,
        "found": 2,
        "unrepaired": 1,
        "gone": 0,
        "errors": {},
    }
)
class AuditSerializer(Output):
    """What an audit found and did."""

    run = serializers.IntegerField(source="run_id", allow_null=True)
    started_at = Instant()
    duration_ms = serializers.FloatField()
    rows = serializers.IntegerField(help_text="Stored rows it looked at beside the active ones.")
    found = serializers.SerializerMethodField()
    unrepaired = serializers.SerializerMethodField(help_text="How many of those wait for a person.")
    gone = serializers.SerializerMethodField(help_text="Earlier findings that are no longer seen.")
    errors = serializers.DictField(  # type: ignore[assignment]  # A name of DRF's own, for input only.
        child=serializers.CharField(), help_text="Checks that could not be carried out."
    )

    def get_found(self, report: Any) -> int:
        return len(report.findings)

    def get_unrepaired(self, report: Any) -> int:
        return len(report.unrepaired)

    def get_gone(self, report: Any) -> int:
        return len(report.gone)
