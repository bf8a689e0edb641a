"""The one clock that decides: the database's.

Application machines may disagree with it and with each other, so due times, gates and leases are
compared with what PostgreSQL says, read once per transaction after its lock and passed down.
"""

from datetime import datetime

from django.db import connection


def database_now() -> datetime:
    """The database's time at this moment, an aware datetime in UTC.

    `clock_timestamp()` and not `now()`: the latter is when the transaction began, which may be long
    before its lock was granted, and a due time that passed while waiting would look like the future.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    assert isinstance(now, datetime)
    return now
