"""The OpenAPI document: what every operation shares is said here once, what is its own at its method."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from django.utils.translation import override
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_serializer,
)
from rest_framework import serializers

from helpdesk.api.fields import Input, Output
from helpdesk.api.problems import MEDIA_TYPE, document

VERSION: Final = "1.0.0"
DESCRIPTION: Final = """
Everything a page of the helpdesk can do, for programs. Nothing here may do what a page may not.

**Signing in.** `POST /api/v1/auth/token/` with a name and a password; then send
`Authorization: Bearer …` with every request.

**Names.** A team goes by its slug, a ticket by its number in the team. What you may not see does not exist for
you: 404.

**Versions.** Staff see a ticket's `version`, which is its `ETag` too. Whoever changes a ticket says which version
they have seen, as `version` in the body or as `If-Match`. If somebody was faster the answer is 409 with
`current_version` and the `ticket` as it is now: decide again from there. Comments need no version, for they
overwrite nothing.

**Doing it once.** A POST that creates a ticket, comment, link or member takes an `Idempotency-Key`. The same key with
the same body gives the first answer again for 24 hours; with another body it is refused with 422.

**Lists** come in pages. Follow `next` until it is null. A page begins behind the last row of the one before: nothing
is skipped or repeated, whatever changes meanwhile.

**Errors** are problem documents (RFC 9457, `application/problem+json`). `type` is for programs, `detail` for people, in
the language of `Accept-Language`; `errors` has the messages by field.

**Times** are UTC, ISO 8601 with `Z`. Unknown fields are refused, so that a typo is not a silent no-op.
""".strip()

TAGS: Final = [
    {"name": "session", "description": "Tokens, and who you are."},
    {"name": "members", "description": "Who is in a team. Its administrators change that."},
    {"name": "tickets", "description": "Requests, who is responsible, and when they are reminded."},
    {"name": "conversation", "description": "Comments, history and blockers of a ticket."},
    {"name": "queue", "description": "The tasks behind the reminders, and what the audit found."},
    {"name": "notifications", "description": "Reminders that reached you."},
]


class ProblemSerializer(Output):
    """An error, as RFC 9457 has it."""

    type = serializers.CharField(help_text="What kind; never changes. For programs.")
    title = serializers.CharField(help_text="The meaning of the status.")
    status = serializers.IntegerField(help_text="The status of the answer.")
    detail = serializers.CharField(help_text="What is wrong, in the reader's language.")
    errors = serializers.DictField(  # type: ignore[assignment]  # A name of DRF's own, for input only.
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="What is wrong with which field.",
    )


# Every refusal that an operation can name: what it means, and an example of it.
_REFUSALS: Final[Mapping[int, tuple[str, Mapping[str, Any]]]] = {
    400: (
        "Something in the body, the address or the headers is not valid.",
        document(
            400,
            "invalid_input",
            "This must not be empty.",
            {"errors": {"title": ["This must not be empty."]}},
        ),
    ),
    401: (
        "There is no valid token.",
        document(401, "not_authenticated", "Authentication credentials were not provided."),
    ),
    403: (
        "Your role in this team does not allow it.",
        document(403, "not_allowed", "Your role in this team does not allow this."),
    ),
    404: (
        "It does not exist, or not for you.",
        document(404, "not_found", "There is nothing here that you may see."),
    ),
    405: (
        "There is no such method here.",
        document(405, "method_not_allowed", "Method “PUT” not allowed."),
    ),
    406: (
        "Answers are JSON.",
        document(406, "not_acceptable", "Could not satisfy the request Accept header."),
    ),
    409: (
        "The state does not allow it, or somebody was faster.",
        document(409, "invalid_transition", "Only a failed task can be retried."),
    ),
    413: (
        "The body is too large.",
        document(413, "payload_too_large", "The body is too large."),
    ),
    415: (
        "Bodies are JSON.",
        document(415, "unsupported_media_type", "Unsupported media type “text/plain” in request."),
    ),
    422: (
        "This Idempotency-Key came with another request before.",
        document(
            422,
            "idempotency_key_reused",
            "This Idempotency-Key was used for another request.",
        ),
    ),
    429: (
        "Too often; `Retry-After` says how many seconds to wait.",
        document(429, "too_many_requests", "Request was throttled."),
    ),
    503: (
        "The team is busy; try again in a moment.",
        document(503, "busy", "This team is busy right now. Please try again in a moment."),
    ),
}


def _if_match(*, required: bool) -> OpenApiParameter:
    unless = "" if required else ", unless the body says its `version`"
    return OpenApiParameter(
        "If-Match",
        {"type": "string", "pattern": r'^"[0-9]{1,17}"$'},
        OpenApiParameter.HEADER,
        required=required,
        description=f"The `ETag` of the ticket you have seen{unless}.",
    )


IDEMPOTENCY_KEY: Final = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "pattern": "^[!-~]{1,200}$"},
    OpenApiParameter.HEADER,
    description="Chosen by you. The same request with the same key is carried out once.",
)


def _etag(status: int) -> OpenApiParameter:
    return OpenApiParameter(
        "ETag",
        str,
        OpenApiParameter.HEADER,
        description="The version, for `If-Match`. Staff only.",
        response=[status],
    )


def operation(
    name: str,
    summary: str,
    *,
    tag: str,
    answers: type[Output] | None,
    status: int = 200,
    takes: type[Input] | None = None,
    query: type[Input] | None = None,
    refuses: Sequence[int] = (),
    versioned: bool = False,
    creates: bool = False,
    conflict: type[Output] | None = None,
    anonymous: bool = False,
    description: str = "",
) -> Callable[[Any], Any]:
    """Describe a method: its name in clients, its summary, its body (`takes`), its answer, and which statuses it refuses with beside the common ones.

    `versioned`: it takes `If-Match`. `creates`: it takes an `Idempotency-Key`. `conflict`: what a 409 looks
    like where it is more than a problem.
    """
    statuses = {405, 406, 503, *refuses}
    statuses |= set() if anonymous else {401}
    parameters: list[Any] = [query] if query else []
    if query or versioned or creates:
        statuses.add(400)
    if takes:
        statuses |= {400, 413, 415, 429}
    if versioned:
        parameters.append(_if_match(required=takes is None))
        statuses |= {409, 429}
    if creates:
        parameters.append(IDEMPOTENCY_KEY)
        statuses |= {422, 429}
    if answers is not None and answers.__name__ == "TicketDetailSerializer":
        parameters.append(_etag(status))
    responses: dict[Any, Any] = {
        status: OpenApiResponse(answers, description="Done.")
        if answers
        else OpenApiResponse(description="Done; there is no body.")
    }
    for refused in sorted(statuses):
        meaning, example = _REFUSALS[refused]
        shape = conflict if refused == 409 and conflict else ProblemSerializer
        responses[refused, MEDIA_TYPE] = OpenApiResponse(
            shape,
            description=meaning,
            examples=None
            if shape is not ProblemSerializer
            else [OpenApiExample(example["title"], value=example, response_only=True)],
        )
    return extend_schema(
        operation_id=name,
        summary=summary,
        description=description or None,
        tags=[tag],
        parameters=parameters,
        request=takes,
        responses=responses,
        auth=[] if anonymous else None,
    )


def example(value: Mapping[str, Any], *, refusal: int | None = None) -> Callable[[Any], Any]:
    """An example of a serializer; `refusal` is the status of the problems that look like it."""
    shown = OpenApiExample(
        "Example",
        value=value,
        media_type=MEDIA_TYPE if refusal else "application/json",
        status_codes=[refusal] if refusal else None,
    )

    def described(serializer: Any) -> Any:
        serializer.example = value
        return extend_schema_serializer(examples=[shown])(serializer)

    return described


# --- After the generator --------------------------------------------------------------------------
_TICKET: Final = {"team": "$request.path.team", "number": "$response.body#/number"}
_SAME_TICKET: Final = {"team": "$request.path.team", "number": "$request.path.number"}
_SEEN: Final = {**_TICKET, "If-Match": "$response.header.ETag"}
_READ: Final = ("get_ticket", "list_comments", "list_events", "list_links", "add_comment")
_CHANGE: Final = ("edit_ticket", "schedule_reminder", "transition_ticket", "assign_ticket")


def _of_team(name: str, place: str = "/id") -> dict[str, str]:
    return {"team": "$request.path.team", name: f"$response.body#{place}"}


# What can be done next with an answer: operation → next operation → its parameters.
LINKS: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    **{
        name: dict.fromkeys(_READ, _TICKET) | dict.fromkeys(_CHANGE, _SEEN)
        for name in ("create_ticket", "get_ticket", *_CHANGE)
    },
    "list_tickets": {
        next_: {"team": "$request.path.team", "number": "$response.body#/results/0/number"}
        for next_ in _READ
    },
    "add_comment": dict.fromkeys(("get_ticket", "list_comments"), _SAME_TICKET),
    "list_links": {
        "remove_blocker": {**_SAME_TICKET, "blocker": "$response.body#/results/0/number"}
    },
    "add_member": {next_: _of_team("member_id") for next_ in ("change_role", "remove_member")},
    "list_members": {"change_role": _of_team("member_id", "/results/0/id")},
    "list_tasks": {
        next_: _of_team("task_id", "/results/0/id") for next_ in ("get_task", "retry_task")
    },
    "list_findings": {
        next_: _of_team("finding_id", "/results/0/id")
        for next_ in ("acknowledge_finding", "resolve_finding", "repair_finding")
    },
    "list_notifications": {"read_notification": {"notice_id": "$response.body#/results/0/id"}},
    "me": {"list_tickets": {"team": "$response.body#/memberships/0/team/slug"}},
}


def finish(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """What the generator does not know: what the document is about, that bodies are closed, what comes next."""
    result["info"] |= {"version": VERSION, "description": DESCRIPTION}
    result["tags"] = TAGS
    schemas = result["components"]["schemas"]
    for shape in schemas.values():
        # Docstrings of the base classes are for readers of the code.
        if shape.get("description") in (Input.__doc__, Output.__doc__):
            del shape["description"]
    for path in result["paths"].values():
        for each in path.values():
            for content in each.get("requestBody", {}).get("content", {}).values():
                schemas[content["schema"]["$ref"].rpartition("/")[2]]["additionalProperties"] = (
                    False
                )
            _link(each)
    return result


def _link(described: dict[str, Any]) -> None:
    status = min(described["responses"])
    for name, parameters in LINKS.get(described["operationId"], {}).items():
        described["responses"][status].setdefault("links", {})[name] = {
            "operationId": name,
            "parameters": dict(parameters),
        }


@cache
def openapi() -> dict[str, Any]:
    """The document. It takes a third of a second to make and never changes while the program runs."""
    with override("en"):
        generator = SchemaGenerator()  # type: ignore[no-untyped-call]
        return dict(generator.get_schema(request=None, public=True))  # type: ignore[no-untyped-call]
