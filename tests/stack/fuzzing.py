"""What a schema cannot say about requests to the API. Loaded by Schemathesis, which calls this before each one."""

import re
from typing import Any

import schemathesis

ETAG = re.compile(r'"[0-9]{1,17}"', re.ASCII)


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Valid by the schema is meant to be valid.

    So no cursor is made of chance, one version is named, not two or none, and an edit changes something.
    """
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if case.query:
        case.query.pop("cursor", None)
    if case.operation.definition.raw["operationId"] == "edit_ticket" and case.body.keys() <= {
        "version"
    }:
        case.body["title"] = "Changed"
    if "If-Match" not in {parameter.name for parameter in case.operation.headers}:
        return
    tag = (case.headers or {}).get("If-Match", "")
    is_named = isinstance(case.body, dict) and "version" in case.body
    if is_named:
        case.headers.pop("If-Match", None)
    elif not ETAG.fullmatch(tag):
        # Theirs are any header's ETags, whatever the schema says.
        case.headers["If-Match"] = '"1"'
