"""Lists come in pages: what comes next is in an opaque cursor that names a row, never a count of rows.

So a page begins behind the last row of the one before, whatever was added or went away meanwhile.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, cast

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from helpdesk.api.fields import LARGEST, Input, Output, Text, Whole
from helpdesk.api.schema import example
from helpdesk.errors import InvalidInput

SIZE: Final = 50
LARGEST_SIZE: Final = 100
# Ours are under a hundred characters. An address that is too long for the web server is refused as HTML.
LONGEST_CURSOR: Final = 200


class PageQuery(Input):
    cursor = Text(
        required=False,
        max_length=LONGEST_CURSOR,
        help_text="From the `next` of the page before; everything else must be as it was there.",
    )
    limit = Whole(
        required=False, default=SIZE, min_value=1, max_value=LARGEST_SIZE, help_text="Rows a page."
    )


def page_of(of: type[Output]) -> type[Output]:
    """The serializer class of a page of these."""
    name = of.__name__.removesuffix("Serializer")
    page = type(
        f"{name}Page",
        (Output,),
        {
            "__doc__": f"A page of {name}.",
            "next": serializers.URLField(
                allow_null=True, help_text="The address of the next page; null on the last one."
            ),
            "results": of(many=True),
        },
    )
    return cast(type[Output], example({"next": None, "results": [of.example]})(page))


def encode(*position: Any) -> str:
    """A cursor for a position: plain values that JSON can write."""
    return urlsafe_b64encode(json.dumps(position, separators=(",", ":")).encode()).decode()


def decode(cursor: str | None, *types: type) -> tuple[Any, ...] | None:
    """The position, None without a cursor. Raises `InvalidInput` unless it has values of these types."""
    if cursor is None:
        return None
    try:
        position = json.loads(urlsafe_b64decode(cursor.encode("ascii")))
    except (ValueError, RecursionError) as error:  # Also what is not base64, and not ASCII.
        raise no_cursor() from error
    if (
        not isinstance(position, list)
        or [type(each) for each in position] != list(types)
        or any(isinstance(each, int) and not 0 <= each <= LARGEST for each in position)
    ):
        raise no_cursor()
    return tuple(position)


def moment(text: str) -> datetime:
    """A time of a position. Raises `InvalidInput`."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise no_cursor() from error
    if at.tzinfo is None or not 1 < at.year < 9999:
        raise no_cursor()
    return at


def before(cursor: str | None) -> int | None:
    """The last id of the page before, for lists by id."""
    position = decode(cursor, int)
    return position[0] if position else None


def no_cursor() -> InvalidInput:
    return InvalidInput(cursor=_("This is no cursor of this list. Begin with its first page."))


def next_address(request: Request, cursor: str | None) -> str | None:
    """The address of the page that begins there; None if there is none."""
    if cursor is None:
        return None
    return replace_query_param(request.build_absolute_uri(), "cursor", cursor)


def answer_by_id(request: Request, found: Sequence[Any], limit: int, of: type[Output]) -> Response:
    """A page of rows by id, of which the caller has read one more than the limit, to see whether there is a next."""
    cursor = encode(found[limit - 1].id) if len(found) > limit else None
    return Response(
        {
            "next": next_address(request, cursor),
            "results": of(found[:limit], many=True).data,
        }
    )
