"""Message catalogues: `makemessages`, `compilemessages` and a check in one, without GNU gettext.

The compiled catalogues are committed: no machine needs a build step to speak Chinese.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    help = "Bring the message catalogues up to date with the texts in code and templates."
    # Works without a database and whatever state the settings are in.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check",
            action="store_true",
            help="write nothing; fail with a list of what is missing or wrong",
        )

    def handle(self, *, check: bool, **_options: Any) -> None:
        try:  # Who changes a text needs Babel; a server does not have it.
            from helpdesk.management import catalogues
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "babel":
                raise
            raise CommandError(
                "This needs Babel, which is in the “test” group of pyproject.toml."
            ) from error
        root, home = Path(settings.BASE_DIR), Path(settings.LOCALE_PATHS[0])
        languages = [code for code, _name in settings.LANGUAGES]
        if check:
            problems = catalogues.find_problems(root, home, languages)
            for problem in problems:
                self.stderr.write(problem)
            if problems:
                raise CommandError(
                    f"{len(problems)} to mend; `manage.py messages` mends some of it."
                )
            self.stdout.write("All messages are translated.")
            return
        template = catalogues.extract_messages(root)
        for language in languages:
            for line in catalogues.write_catalogue(home, language, template):
                self.stdout.write(line)
