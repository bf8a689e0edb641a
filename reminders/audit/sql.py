"""Running statements: several in one trip to the server, rows as dictionaries."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import connection

Row = dict[str, Any]

# PostgreSQL's number of the type jsonb; Django leaves its values as text in a bare cursor.
_JSONB: Final = 3802


def rows(sql: str, parameters: Mapping[str, Any]) -> list[Row]:
    """The rows of one statement, by column name."""
    return results([sql], parameters)[0]


def results(statements: Sequence[str], parameters: Mapping[str, Any]) -> list[list[Row]]:
    """The rows of each statement, all sent at once: a scan is many small ones, and the trips would cost more than they do.

    If one of them fails, so do those after it.
    """
    if not statements:
        return []
    with connection.cursor() as cursor:
        cursor.execute(";\n".join(statements), parameters)
        found = [_fetch(cursor)]
        while cursor.nextset():
            found.append(_fetch(cursor))
    return found


def _fetch(cursor: Any) -> list[Row]:
    values = cursor.fetchall()
    if not values:
        return []  # Nearly always. Describing the columns costs more than the statement.
    columns = cursor.description
    names = [column.name for column in columns]
    fetched: list[Row] = [dict(zip(names, row, strict=True)) for row in values]
    for name in [column.name for column in columns if column.type_code == _JSONB]:
        for row in fetched:
            if row[name] is not None:
                row[name] = json.loads(row[name])
    return fetched
