"""Running statements: planned once for a session, several in one trip to the server, rows as dictionaries.

A scan is some thirty small statements over few rows. Planning them and going there and back costs ten
times what they do, so each is prepared under a name of its own and all are sent at once.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final
from weakref import WeakKeyDictionary

from django.db import DatabaseError, connection
from psycopg.errors import InvalidSqlStatementName

Row = dict[str, Any]

# PostgreSQL's number of the type jsonb; Django leaves its values as text in a bare cursor.
_JSONB: Final = 3802
# The parameters that queries may have, by what their names begin with.
_TYPES: Final = {
    "now": "timestamptz",
    "team": "bigint",
    "codes": "text[]",
    "ids": "bigint[]",
    "hint": "bigint[]",
}
_PARAMETER: Final = re.compile(r"%\((\w+)\)s")
# What each session has prepared. Prepared statements die with their session, and so do these names.
_prepared: Final[WeakKeyDictionary[Any, set[str]]] = WeakKeyDictionary()


def rows(sql: str, parameters: Mapping[str, Any]) -> list[Row]:
    """The rows of one statement that is not prepared, by column name."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return _fetch(cursor)


def results(
    statements: Sequence[str], parameters: Mapping[str, Any], *, prepare: bool = True
) -> list[list[Row]]:
    """The rows of each statement, all sent at once. If one fails, so do those after it.

    `prepare=False` is for those whose best plan depends on the values: they are planned each time.
    """
    if not statements:
        return []
    # The same ids go to many statements: written once, instead of by the driver for each.
    values = {
        name: "{" + ",".join(map(str, value)) + "}" if name.startswith("ids_") else value
        for name, value in parameters.items()
    }
    with connection.cursor() as cursor:
        calls = [_call(cursor, sql) for sql in statements] if prepare else statements
        try:
            cursor.execute(";\n".join(calls), values)
        except DatabaseError as error:
            if isinstance(error.__cause__, InvalidSqlStatementName):
                _prepared.pop(cursor.connection, None)  # Somebody has reset the session.
            raise
        found = [_fetch(cursor)]
        while cursor.nextset():
            found.append(_fetch(cursor))
    return found


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A statement under a name: the text that prepares it, and the one that runs it."""

    name: str
    prepare: str
    execute: str


@lru_cache(maxsize=500)
def _named(sql: str) -> _Prepared:
    name = f"audit_{sha256(sql.encode()).hexdigest()[:16]}"
    names = list(dict.fromkeys(_PARAMETER.findall(sql)))
    if not names:
        return _Prepared(name, f"PREPARE {name} AS {sql}", f"EXECUTE {name}")
    places = {parameter: f"${place}" for place, parameter in enumerate(names, 1)}
    types = ", ".join(_TYPES[parameter.split("_")[0]] for parameter in names)
    text = _PARAMETER.sub(lambda found: places[found[1]], sql)
    arguments = ", ".join(f"%({parameter})s" for parameter in names)
    return _Prepared(name, f"PREPARE {name} ({types}) AS {text}", f"EXECUTE {name} ({arguments})")


def _call(cursor: Any, sql: str) -> str:
    """The text that runs the statement, which is prepared first if this session has not done that."""
    statement = _named(sql)
    mine = _prepared.setdefault(cursor.connection, set())
    if not mine:
        # A plan for any number of rows: by indexes, so it suits few and many, and is made only once.
        cursor.execute("SET plan_cache_mode = force_generic_plan")
    if statement.name not in mine:
        cursor.execute(statement.prepare)
        mine.add(statement.name)
    return statement.execute


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
