"""Made-up data for a first look."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from tickets import demo
from tickets.models import Team, User


class Command(BaseCommand):
    help = "Create made-up teams, people and tickets, if there is no team yet. Safe to run at each start."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--force",
            action="store_true",
            help="also where DEBUG is off, although everybody knows the passwords",
        )

    def handle(self, *, force: bool, **_options: Any) -> None:
        if Team.objects.exists():
            self.stdout.write("There is a team already, so no demo data is needed.")
            return
        # Somebody's own account, or a first start that was interrupted: no password is changed here.
        names = [person.username for person in demo.PEOPLE]
        if taken := User.objects.filter(username__in=names).order_by("username").first():
            self.stdout.write(f"The account “{taken.username}” exists, so no demo data is created.")
            return
        if not (settings.DEBUG or force):
            raise CommandError(
                "Everybody knows the demo passwords, so where DEBUG is off this needs --force. "
                "`make run` leaves demo data out with HELPDESK_DEMO=0."
            )
        demo.create()
        self.stdout.write(f"Created {len(demo.TEAMS)} teams and {len(demo.STORIES)} tickets.")
        self.stdout.write("\n".join(["", *accounts(), ""]))


def accounts() -> list[str]:
    """The table of people who can sign in."""
    rows = [("account", "password", "role", "name")]
    rows += [
        (
            person.username,
            demo.PASSWORD,
            person.about,
            f"{person.first_name} {person.last_name}".strip(),
        )
        for person in demo.PEOPLE
    ]
    # The name last: Chinese letters are two columns wide.
    return [f"  {name:<11}{password:<10}{role:<35}{full}" for name, password, role, full in rows]
