"""Look for inconsistencies now."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from helpdesk.durations import in_words
from reminders.audit import record, runner
from reminders.audit.record import Record
from reminders.audit.registry import CHECKS
from reminders.audit.runner import AuditBusy, Report
from reminders.states import Trigger
from tickets.models import Team


class Command(BaseCommand):
    help = (
        "Look for inconsistencies in the queue and what belongs to it, record them, and mend those that "
        "are certain. Exit status 1 if something is left for a person, 2 if it could not be carried out."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--team", metavar="SLUG", help="only this team")
        parser.add_argument(
            "--check",
            action="append",
            choices=sorted(CHECKS),
            metavar="CODE",
            help=f"only this check; may be repeated. One of: {', '.join(CHECKS)}",
        )
        parser.add_argument(
            "--full",
            action="store_true",
            help="every stored row, not only what is active, recent and next in turn",
        )
        parser.add_argument("--dry-run", action="store_true", help="write nothing, mend nothing")
        parser.add_argument("--json", action="store_true", help="one JSON document, for programs")

    def handle(
        self,
        *,
        team: str | None,
        check: list[str] | None,
        full: bool,
        dry_run: bool,
        **options: Any,
    ) -> None:
        team_id = None
        if team is not None:
            team_id = Team.objects.filter(slug=team).values_list("pk", flat=True).first()
            if team_id is None:
                raise CommandError(f"There is no team “{team}”.", returncode=2)
        try:
            report = runner.audit(
                trigger=Trigger.COMMAND,
                team_id=team_id,
                codes=check or (),
                full=full,
                dry_run=dry_run,
            )
        except AuditBusy as busy:
            raise CommandError(str(busy), returncode=2) from busy
        self.stdout.write(_json(report) if options["json"] else _table(report))
        if report.errors:
            raise SystemExit(2)
        if report.unrepaired:
            raise SystemExit(1)


def _table(report: Report) -> str:
    slugs = dict(Team.objects.values_list("pk", "slug"))
    rows = [("check", "subject", "team", "severity", "verdict", "for", "seen", "done")]
    rows += [
        (
            each.code,
            _subject(each),
            slugs[each.team_id] if each.team_id else "-",
            each.severity.lower(),
            each.verdict.lower(),
            in_words(each.dwell),
            str(each.seen),
            " ".join(filter(None, (each.action.lower(), each.detail)))
            or f"in doubt: {', '.join(each.doubts)}" * bool(each.doubts)
            or "-",
        )
        for each in report.findings
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    for code, error in report.errors.items():
        lines.append(f"{code} could not be carried out: {error}")
    found, left = len(report.findings), len(report.unrepaired)
    said = f"{found} found, {found - left} settled, {left} left" if found else "nothing found"
    lines.append(
        f"{'dry run' if report.run_id is None else f'run {report.run_id}'}: {said}, "
        f"{len(report.gone)} gone; {report.rows} stored rows, {report.duration_ms:.0f} ms"
    )
    return "\n".join(lines if found else lines[1:])


def _subject(found: Record) -> str:
    """As the log has it, and a ticket's number, which is what people know it by."""
    number = found.evidence.get("ticket.number")
    return f"{found.subject_kind.lower()} {found.subject_id}" + (f" (#{number})" if number else "")


def _json(report: Report) -> str:
    return json.dumps(
        {
            "run": report.run_id,
            "started_at": report.started_at.isoformat(),
            "duration_ms": round(report.duration_ms, 1),
            "query_ms": round(report.query_ms, 1),
            "rows": report.rows,
            "findings": [record.fields(each) for each in report.findings],
            "gone": [record.fields(each) for each in report.gone],
            "unrepaired": len(report.unrepaired),
            "errors": report.errors,
            "broker": report.broker,
        },
        indent=2,
        ensure_ascii=False,
    )
