"""What the documents say in tables is what the code does."""

import re

import pytest
from django.conf import settings

from reminders.audit.checks import queue
from reminders.audit.registry import CHECKS
from reminders.states import TRANSITIONS


def test_the_states_in_the_documents_are_those_of_the_code() -> None:
    text = (settings.BASE_DIR / "docs" / "reminders.md").read_text()
    rows = re.findall(r"^\| (–|[A-Z]+) \| ([A-Z]+) \| ([A-Z_]+) \|", text, re.MULTILINE)

    assert {(before.replace("–", ""), after, cause) for before, after, cause in rows} == {
        (before or "", after, cause) for before, after, cause in TRANSITIONS
    }


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_every_setting_that_comes_from_the_environment_is_explained(name: str) -> None:
    code = (settings.BASE_DIR / "helpdesk" / "settings.py").read_text()
    known = set(re.findall(r"(?:env\.\w+|seconds)\(\s*\"([A-Z_]+)\"", code))
    text = (settings.BASE_DIR / name).read_text()

    assert len(known) > 25
    assert {setting for setting in known if f"`{setting}`" not in text} == set()


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_every_link_into_the_project_leads_somewhere(name: str) -> None:
    text = (settings.BASE_DIR / name).read_text()
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)

    assert links
    assert [link for link in links if not (settings.BASE_DIR / link).exists()] == []


def test_the_checks_in_the_documents_are_those_of_the_code() -> None:
    text = (settings.BASE_DIR / "docs" / "audit.md").read_text()
    rows = re.findall(r"^\| `([a-z_]+)` \| (\w+) \| .+ \| (.+) \|$", text, re.MULTILINE)

    assert [(code, severity, repair != "–") for code, severity, repair in rows] == [
        (code, str(check.severity.label).lower(), check.action is not None)
        for code, check in CHECKS.items()
    ]


def test_the_example_of_a_check_is_as_the_code_has_it() -> None:
    """Its class, without texts and some doubts, is what a newcomer copies."""
    text = (settings.BASE_DIR / "docs" / "audit.md").read_text()
    example = text.split("```python\n")[1].split("```")[0]
    names = vars(queue) | {"check": lambda class_: class_}
    exec(example, names)
    mine, real = names["ExpiredLease"], CHECKS["expired_lease"]

    for name in ("code", "subject", "severity", "live", "stored", "action"):
        assert getattr(mine, name) == getattr(real, name), name
