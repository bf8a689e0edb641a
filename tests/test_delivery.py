"""What goes out with a release: locked packages, static files, and pages that need no other host."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client

from tests.cast import Cast
from tests.factories import open_ticket

LOCKS = ("base", "run", "dev")


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_is_pinned_with_hashes_and_no_index_is_named(name: str) -> None:
    text = (settings.BASE_DIR / "requirements" / f"{name}.txt").read_text()
    # One logical line for each package.
    packages = [
        line.strip()
        for line in text.replace("\\\n", " ").splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    ]

    assert len(packages) > 20
    for package in packages:
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==[^ ]+ .*--hash=sha256:", package), package
    assert not re.search(r"https?:|file:|--(extra-)?index|--find-links", text)


def test_the_locks_contain_each_other() -> None:
    pins = {
        name: set(
            re.findall(
                r"^[\w.-]+==[^ ;]+",
                (settings.BASE_DIR / "requirements" / f"{name}.txt").read_text(),
                re.MULTILINE,
            )
        )
        for name in LOCKS
    }

    assert pins["base"] < pins["run"] < pins["dev"]


def test_pages_work_with_collected_and_hashed_static_files(
    client: Client, settings: Any, tmp_path: Path, db: None
) -> None:
    """As in production: every file a page or a style sheet names is there, under a name that changes with it."""
    settings.DEBUG = False
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    }

    call_command("collectstatic", interactive=False, verbosity=0)
    html = client.get("/sign-in/").content.decode()

    names = re.findall(r'(?:src|href)="/static/([^"]+)"', html)
    assert len(names) >= 5
    for name in names:
        assert re.search(r"\.[0-9a-f]{12}\.", name), name
        assert (tmp_path / name).exists()


@pytest.mark.usefixtures("plain_static")
def test_no_page_names_another_host(client: Client, cast: Cast) -> None:
    ticket = open_ticket(cast)
    client.force_login(cast.user("agent"))
    team = f"/t/{cast.team.slug}"

    for address in (
        "/notifications/",
        f"{team}/tickets/",
        f"{team}/tickets/new/",
        f"{team}/tickets/{ticket.number}/",
        f"{team}/tasks/",
        "/nothing",
    ):
        html = client.get(address).content.decode()
        assert re.findall(r'(?:src|href|action)="(?:\w+:)?//[^"]*"', html) == []
        assert "<script>" not in html
        assert " style=" not in html
        assert " onclick=" not in html


@pytest.mark.parametrize("path", ["app.css", "theme.js", "countdown.js", "icon.svg"])
def test_no_own_static_file_names_another_host(path: str) -> None:
    text = (settings.BASE_DIR / "helpdesk/static/helpdesk" / path).read_text()

    assert not re.search(r"(?:url\(|import |@import|fetch\(|src=)[\"'(]?\s*(?:https?:)?//", text)
