"""What a scan sends to the database, and how the database carries it out."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection

# What grows with the years.
HISTORY: Final = (
    "reminders_task",
    "reminders_tasktransition",
    "tickets_ticket",
    "tickets_ticketevent",
    "notifications_remindernotification",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a statement was carried out: each access to a table, and how long it took in all."""

    scans: list[str]
    took: str

    @property
    def reads_history_whole(self) -> bool:
        return any(
            "Seq Scan on " in scan and scan.split("Seq Scan on ")[1].split()[0] in HISTORY
            for scan in self.scans
        )


def sent_by(scan: Callable[[], Any]) -> list[str]:
    """Every statement that reads, one by one, with its values in it."""
    sent: list[str] = []

    def note(execute: Any, sql: str, parameters: Any, many: Any, context: Any) -> Any:
        text = context["cursor"].mogrify(sql, parameters) if parameters else sql
        sent.extend(text.split(";\n"))
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(note):
        scan()
    return [text for text in sent if text.startswith(("EXECUTE", "SELECT", "WITH"))]


def plan_of(statement: str) -> Plan:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF) {statement}")
        lines = [line for (line,) in cursor.fetchall()]
    return Plan(
        scans=[scan.strip() for line in lines for scan in re.findall(r"(?:\w+ )+?Scan[^(]*", line)],
        took=next(line for line in lines if line.startswith("Execution Time")).split(": ")[1],
    )
