"""Every text can be read in every language, and the tool that makes sure sees every text."""

import gettext
import sys
from io import BytesIO, StringIO
from pathlib import Path

import pytest
from babel.messages.catalog import Message
from babel.messages.pofile import read_po
from django.conf import LazySettings
from django.core.management import CommandError, call_command

import helpdesk.management
from helpdesk.management.bare_text import bare_text
from helpdesk.management.catalogues import (
    catalogue_path,
    catalogue_problems,
    extract_messages,
    find_problems,
    messages_of_python,
    messages_of_template,
    placeholder_problem,
    write_catalogue,
)


def test_the_catalogues_of_this_project_are_complete() -> None:
    output = StringIO()
    try:
        call_command("messages", check=True, stdout=output, stderr=output)
    except CommandError:
        pytest.fail(output.getvalue())


# --- What is found in Python --------------------------------------------------------------------


def test_every_gettext_function_is_known() -> None:
    source = """
_("a"), gettext("b"), gettext_lazy("c"), gettext_noop("d")
ngettext("one e", "%(n)d e", 3), ngettext_lazy("one f", "%(n)d f", "n")
pgettext("verb", "g"), pgettext_lazy("noun", "h"), npgettext("i", "one i", "%(n)d i", 3)
npgettext_lazy("j", "one j", "%(n)d j", "n")
_("joined "
  "over lines")
something("not this"), _(variable)
"""
    assert [(ids, context) for ids, context, _comments in messages_of_python(source)] == [
        ("a", None),
        ("b", None),
        ("c", None),
        ("d", None),
        (("one e", "%(n)d e"), None),
        (("one f", "%(n)d f"), None),
        ("g", "verb"),
        ("h", "noun"),
        (("one i", "%(n)d i"), "i"),
        (("one j", "%(n)d j"), "j"),
        ("joined over lines", None),
    ]


def test_a_comment_for_translators_goes_with_the_message_below_it() -> None:
    source = '# Translators: as in "to open a ticket".\n_("Open")\n# Anything else.\n_("Close")\n'
    assert [comments for _ids, _context, comments in messages_of_python(source)] == [
        ['Translators: as in "to open a ticket".'],
        [],
    ]


# --- What is found in templates -----------------------------------------------------------------

TEMPLATE = """\
{% extends "base.html" %}
{% load i18n %}
{% block title %}{% translate "Tickets" %} · {{ block.super }}{% endblock %}
      {# Translators: the button. #}
   {% translate "Open" context "verb" %}
  <p title="{% translate 'A title' %}" class='it"s unbalanced (['>“—”　&nbsp;"
    {% blocktranslate trimmed count n=tickets|length %}
      One ticket
    {% plural %}
      {{ n }} tickets at 100%
    {% endblocktranslate %}
{% if a %}
\t\t{% blocktranslate with name=user.name context "greeting" %}Hello {{ name }}{% endblocktranslate %}
{% endif %}
    {{ _("In a variable") }} {{ value|default:_("In a filter") }} {% include "x" with t=_("In a tag") %}
  {% comment %}Translators: over
  two lines{% endcomment %}
  {% translate "Commented" %}
{% blocktrans %}Old {{ style }}{% endblocktrans %} {% trans "tag" as t %}
{% comment %}{% translate "Switched off" %}{% endcomment %}
"""


def test_every_translation_tag_of_a_template_is_found() -> None:
    found = list(messages_of_template(TEMPLATE, "page.html"))
    assert [(ids, context) for ids, context, _comments in found] == [
        ("Tickets", None),
        ("Open", "verb"),
        ("A title", None),
        (("One ticket", "%(n)s tickets at 100%%"), None),
        ("Hello %(name)s", "greeting"),
        ("In a variable", None),
        ("In a filter", None),
        ("In a tag", None),
        ("Commented", None),
        ("Old %(style)s", None),
        ("tag", None),
    ]
    comments = {ids: comments for ids, _context, comments in found if comments}
    assert comments == {
        "Open": ["Translators: the button."],
        "Commented": ["Translators: over", "two lines"],
    }


# --- Catalogues ---------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with one text in code and two in a template."""
    (tmp_path / "tickets/migrations").mkdir(parents=True)
    (tmp_path / "templates").mkdir()
    (tmp_path / "tickets/models.py").write_text('_("Ticket %(number)s")\n')
    (tmp_path / "tickets/migrations/0001_initial.py").write_text('_("Only in a migration")\n')
    (tmp_path / "templates/page.html").write_text(
        '{% translate "Ticket %(number)s" %}\n'
        "{% blocktranslate count n=n %}One reply{% plural %}{{ n }} replies{% endblocktranslate %}\n"
    )
    return tmp_path


def update(project: Path, language: str = "zh-hans") -> list[str]:
    return write_catalogue(project / "locale", language, extract_messages(project))


def problems(project: Path, language: str = "zh-hans") -> list[str]:
    path = catalogue_path(project / "locale", language)
    return list(catalogue_problems(path, language, extract_messages(project)))


def po(project: Path, language: str = "zh-hans") -> Path:
    return catalogue_path(project / "locale", language)


def translate(project: Path, *pairs: tuple[str, str]) -> None:
    """Put translations into the file as somebody with an editor would."""
    text = po(project).read_text()
    for message, translation in pairs:
        assert f"{message}\nmsgstr" in text, text
        head, _, tail = text.partition(f"{message}\nmsgstr")
        _old, _, rest = tail.partition("\n")
        number = "[0]" if tail.startswith("[0]") else ""
        text = f'{head}{message}\nmsgstr{number} "{translation}"\n{rest}'
    po(project).write_text(text)


TICKET = 'msgid "Ticket %(number)s"'
REPLIES = 'msgid_plural "%(n)s replies"'


@pytest.fixture
def translated(project: Path) -> Path:
    (project / "templates/page.html").write_text(
        "{% blocktranslate count n=n %}One reply{% plural %}{{ n }} replies{% endblocktranslate %}\n"
    )
    update(project)
    translate(project, (TICKET, "工单 %(number)s"), (REPLIES, "%(n)s 条回复"))
    update(project)
    assert problems(project) == []
    return project


def test_a_new_catalogue_lists_each_text_with_its_files_and_nothing_of_migrations(
    project: Path,
) -> None:
    (project / "templates/page.html").write_text(
        '{% translate "Inbox" %}\n{% blocktranslate %}Ticket {{ number }}{% endblocktranslate %}\n'
    )
    assert update(project) == [
        "zh-hans: to translate “Inbox”",
        "zh-hans: to translate “Ticket %(number)s”",
        "zh-hans: 2 messages.",
    ]
    assert (
        "#: templates/page.html tickets/models.py\n#, python-format\n" + TICKET
        in po(project).read_text()
    )


def test_what_is_written_depends_on_the_texts_alone(translated: Path) -> None:
    before = po(translated).read_bytes(), po(translated).with_suffix(".mo").read_bytes()
    assert b"Date" not in before[0]
    assert b"Babel" not in before[0]

    # Other lines, other order of files: the same texts.
    models = translated / "tickets/models.py"
    models.write_text("\n\n\n" + models.read_text())
    update(translated)

    assert (po(translated).read_bytes(), po(translated).with_suffix(".mo").read_bytes()) == before


def test_the_compiled_catalogue_speaks(translated: Path) -> None:
    spoken = gettext.GNUTranslations(BytesIO(po(translated).with_suffix(".mo").read_bytes()))
    assert spoken.gettext("Ticket %(number)s") == "工单 %(number)s"
    assert spoken.ngettext("One reply", "%(n)s replies", 1) == "%(n)s 条回复"


def test_the_language_of_the_sources_needs_no_translator(project: Path) -> None:
    (project / "templates/page.html").write_text(
        "{% blocktranslate count n=n %}One reply{% plural %}{{ n }} replies{% endblocktranslate %}\n"
    )
    assert update(project, "en") == ["en: 2 messages."]
    assert problems(project, "en") == []
    spoken = gettext.GNUTranslations(BytesIO(po(project, "en").with_suffix(".mo").read_bytes()))
    assert spoken.ngettext("One reply", "%(n)s replies", 1) == "One reply"
    assert spoken.ngettext("One reply", "%(n)s replies", 2) == "%(n)s replies"


def test_a_text_that_is_gone_is_dropped_and_its_translation_not_given_to_a_similar_one(
    translated: Path,
) -> None:
    (translated / "tickets/models.py").write_text('_("Tickets %(number)s")\n')

    assert problems(translated) == [
        "lacks “Tickets %(number)s” of tickets/models.py",
        "no longer used: “Ticket %(number)s”",
    ]
    assert "zh-hans: dropped “Ticket %(number)s” = “工单 %(number)s”" in update(translated)
    assert problems(translated) == ["not translated: “Tickets %(number)s”"]


def test_a_plural_that_was_added_later_has_to_be_translated_anew(translated: Path) -> None:
    (translated / "tickets/models.py").write_text(
        'ngettext("Ticket %(number)s", "Tickets %(number)s", n)\n'
    )
    update(translated)
    assert problems(translated) == ["not translated: “Ticket %(number)s / Tickets %(number)s”"]


@pytest.mark.parametrize(
    ("message", "translation", "problem"),
    [
        (TICKET, "", "not translated"),
        (TICKET, "工单", "placeholders are none instead of %(number)s"),
        (TICKET, "工单 %(nummer)s", "placeholders are %(nummer)s instead of %(number)s"),
        (TICKET, "工单 %(number)", "placeholders are % instead of %(number)s"),
        (REPLIES, "回复", "placeholders are none instead of %(n)s"),
    ],
)
def test_a_missing_or_broken_translation_is_reported(
    translated: Path, message: str, translation: str, problem: str
) -> None:
    translate(translated, (message, translation))
    update(translated)
    (found,) = problems(translated)
    assert found.startswith(problem)


def test_a_fuzzy_translation_is_reported_because_nobody_sees_it(translated: Path) -> None:
    text = po(translated).read_text()
    po(translated).write_text(
        text.replace(f"#, python-format\n{TICKET}", f"#, fuzzy, python-format\n{TICKET}")
    )
    update(translated)
    assert problems(translated) == ["fuzzy: “Ticket %(number)s”"]


def test_an_obsolete_entry_is_reported(translated: Path) -> None:
    with po(translated).open("a") as file:
        file.write('\n#~ msgid "Gone"\n#~ msgstr "没了"\n')
    assert problems(translated) == ["no longer used: “Gone”"]


def test_a_compiled_catalogue_that_is_missing_or_older_is_reported(translated: Path) -> None:
    translate(translated, (TICKET, "单子 %(number)s"))
    assert problems(translated) == ["django.mo is not what it compiles to"]
    po(translated).with_suffix(".mo").unlink()
    assert problems(translated) == ["django.mo is not what it compiles to"]


def test_the_check_writes_nothing_and_fails_with_a_list(
    project: Path, settings: LazySettings
) -> None:
    settings.BASE_DIR = project
    settings.LOCALE_PATHS = [project / "locale"]
    (project / "templates/page.html").write_text("<p>\n  Bare words\n</p>\n")
    output = StringIO()

    with pytest.raises(CommandError, match="3 to mend"):
        call_command("messages", check=True, stderr=output)

    assert output.getvalue().splitlines() == [
        "locale/en/LC_MESSAGES/django.po: does not exist",
        "locale/zh_Hans/LC_MESSAGES/django.po: does not exist",
        "templates/page.html:2: not translatable: “Bare words”",
    ]
    assert not (project / "locale").exists()


def test_without_babel_it_says_where_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "helpdesk.management.catalogues")
    monkeypatch.delattr(helpdesk.management, "catalogues")
    monkeypatch.setitem(sys.modules, "babel", None)
    monkeypatch.delitem(sys.modules, "babel.messages.catalog")

    with pytest.raises(CommandError, match="Babel"):
        call_command("messages", check=True)


def test_updating_twice_and_translating_makes_the_check_pass(
    project: Path, settings: LazySettings
) -> None:
    settings.BASE_DIR = project
    settings.LOCALE_PATHS = [project / "locale"]
    (project / "templates/page.html").unlink()
    call_command("messages", stdout=StringIO())
    translate(project, (TICKET, "工单 %(number)s"))
    call_command("messages", stdout=StringIO())
    output = StringIO()

    call_command("messages", check=True, stdout=output)

    assert output.getvalue() == "All messages are translated.\n"
    assert find_problems(project, project / "locale", ["en", "zh-hans"]) == []
    assert len(read_po(BytesIO(po(project).read_bytes()), locale="zh_Hans")) == 1


@pytest.mark.parametrize(
    ("ids", "string", "right"),
    [
        ("100% sure", "100% 确定", True),
        ("%(n)s of 100%%", "100%% 之 %(n)s", True),
        ("%(n)s of 100%%", "100% 之 %(n)s", False),
        ("%s and %d", "%d 和 %s", True),  # Counted, not ordered: nobody here uses them.
        ("{} and {name}", "{name} 与 {}", True),
        ("{name}", "{名}", False),
        ("%(name)s has it", "%(name)s：在 %(name)s 手里", True),
        ("%s has it", "%s：在 %s 手里", False),
        ("%(n)d", "%(n)s", False),
        (("One", "%(n)d"), ("Eins", "%(n)d"), True),
        (("One", "%(n)d"), ("%(n)d", "%(n)d"), True),
        (("One", "%(n)d"), ("Eins", "Viele"), False),
        (("One", "%(n)d"), ("一",), False),
    ],
)
def test_placeholders_are_compared(ids: str, string: str, right: bool) -> None:
    assert (placeholder_problem(Message(ids, string)) == "") is right


# --- Words that nobody marked -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<p>Hello</p>", [(1, "Hello")]),
        ("<p>\n\n  Hello {{ name }}\n</p>", [(3, "Hello")]),
        ("<p>你</p>", [(1, "你")]),
        ('<a title="Open it">·</a>', [(1, "title=Open it")]),
        (
            '<input placeholder="Minutes" name="minutes" type="number">',
            [(1, "placeholder=Minutes")],
        ),
        ('<img alt="A cat {{ x }}"/>', [(1, "alt=A cat")]),
        ("{% if a %}yes{% else %}no{% endif %}", [(1, "yes no")]),
        ('{% translate "Hello" %} #{{ n }} · v{{ v }} &nbsp;&rarr; 12:00', []),
        ("{% blocktranslate %}Hello {{ name }}{% plural %}Hi{% endblocktranslate %}", []),
        ("{# A comment #}{% comment %}<p>Another</p>{% endcomment %}<!-- third -->", []),
        ("<style>p { color: red }</style><script>let x = 'text' < y;</script><kbd>Ctrl</kbd>", []),
        ('<a {% if x %}class="b"{% endif %} href={% url "x" %} data-word="word">{{ t }}</a>', []),
        ("{% verbatim %}{% endverbatim %}<td{% if x %} hidden{% endif %}></td>", []),
        ("<!doctype html>", []),
    ],
)
def test_bare_words_of_a_page_are_found_and_nothing_else(
    source: str, found: list[tuple[int, str]]
) -> None:
    assert bare_text(source) == found


def test_bare_words_of_a_text_template_are_found() -> None:
    source = '{% translate "Hello" %} {{ name }},\n\na < b and more\n{{ url }}\n'
    assert bare_text(source, html=False) == [(3, "a < b and more")]
