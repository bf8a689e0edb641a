"""What `manage.py messages` works with: texts in the sources, catalogues, and what is wrong between them.

On Babel alone, so that nobody needs GNU gettext. What is written depends on the sources only: no
dates, no line numbers, sorted. So a catalogue changes when a text does, and two branches that add texts
merge.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation import to_locale
from django.utils.translation.template import TRANSLATOR_COMMENT_MARK, templatize

from helpdesk.management.bare_text import bare_text

PACKAGES = ("helpdesk", "tickets", "reminders", "notifications")
TEMPLATES = "templates"
SOURCE_LANGUAGE = "en"

KEYWORDS = {
    **DEFAULT_KEYWORDS,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext_lazy": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext_lazy": ((1, "c"), 2, 3),
}

Ids = str | tuple[str, ...]
Found = tuple[Ids, str | None, list[str]]


# --- What is in the sources ---------------------------------------------------------------------


def extract_messages(root: Path) -> Catalog:
    """Every translatable message under `root`, with the files it occurs in and what its translators should know."""
    catalog = Catalog(fuzzy=False)
    for path in _sources(root):
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        found = (
            messages_of_python(text) if path.suffix == ".py" else messages_of_template(text, name)
        )
        for ids, context, comments in found:
            catalog.add(ids, locations=[(name, 0)], auto_comments=comments, context=context)
    return catalog


def _sources(root: Path) -> list[Path]:
    python = (
        path
        for package in PACKAGES
        for path in (root / package).rglob("*.py")
        if "migrations" not in path.parts
    )
    return sorted([*python, *_template_files(root)])


def _template_files(root: Path) -> list[Path]:
    return sorted(
        path for suffix in ("html", "txt") for path in (root / TEMPLATES).rglob(f"*.{suffix}")
    )


def messages_of_python(text: str) -> Iterator[Found]:
    """(ids, context, comments) of each call of a gettext function. Ids are a tuple where there is a plural."""
    found = extract(
        "python",
        BytesIO(text.encode()),
        keywords=KEYWORDS,
        comment_tags=[TRANSLATOR_COMMENT_MARK],
        strip_comment_tags=False,
    )
    for _line, ids, comments, context in found:
        yield ids, context, comments


def messages_of_template(text: str, name: str) -> Iterator[Found]:
    """The same for a Django template.

    `templatize` leaves the translation tags as function calls where they stood and letters in place
    of everything else. To Python's tokenizer that is a sequence of names, except for indentation that
    makes no sense and the wide spaces that people type between Chinese words: both go.
    """
    lines = templatize(text, origin=name).split("\n")
    yield from messages_of_python(
        "\n".join(re.sub(r"[^\S\n]", " ", line).strip() for line in lines) + "\n"
    )


# --- Catalogues ---------------------------------------------------------------------------------


class Catalogue(Catalog):
    """A catalogue whose header says nothing about when, by whom and with which version it was made."""

    def __init__(self, language: str) -> None:
        super().__init__(
            locale=to_locale(language),
            header_comment=f"# Texts of the helpdesk in {language}. Written by `manage.py messages`;\n"
            "# only the translations (msgstr) are to be changed by hand.",
            fuzzy=False,
        )

    @property
    def mime_headers(self) -> list[tuple[str, str]]:
        return [
            ("Language", str(self.locale_identifier)),
            ("MIME-Version", "1.0"),
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Transfer-Encoding", "8bit"),
            ("Plural-Forms", self.plural_forms),
        ]

    @mime_headers.setter
    def mime_headers(self, value: Iterable[tuple[str, str]]) -> None:
        """Ignored: the header of a file that was read is replaced, never kept."""

    def po(self) -> bytes:
        buffer = BytesIO()
        # Width 0: a changed word changes one line and does not wrap its neighbours anew.
        write_po(buffer, self, width=0, sort_output=True, include_lineno=False)
        return buffer.getvalue().rstrip(b"\n") + b"\n"

    def mo(self) -> bytes:
        buffer = BytesIO()
        write_mo(buffer, self)
        return buffer.getvalue()


def catalogue_path(home: Path, language: str) -> Path:
    return home / to_locale(language) / "LC_MESSAGES" / "django.po"


def read_catalogue(path: Path, language: str) -> Catalogue:
    """The catalogue in the file; an empty one if there is no file."""
    catalogue = Catalogue(language)
    if path.exists():
        with path.open("rb") as file:
            stored = read_po(file, locale=to_locale(language), abort_invalid=True)
        for message in stored:
            if message.id:
                catalogue[message.id] = message
        catalogue.obsolete = stored.obsolete
    return catalogue


def write_catalogue(home: Path, language: str, template: Catalog) -> list[str]:
    """Write what the sources say, with the translations there are. Returns what a translator should know.

    No guessing: a text that changed needs its translation looked at, so a similar one is not taken.
    """
    path = catalogue_path(home, language)
    stored = read_catalogue(path, language)
    catalogue = Catalogue(language)
    for message in template:
        if not message.id:
            continue
        old = stored.get(message.id, message.context)
        catalogue.add(
            message.id,
            string=_translation(message, old, language),
            locations=message.locations,
            flags=old.flags if old else (),
            auto_comments=message.auto_comments,
            user_comments=old.user_comments if old else (),
            context=message.context,
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(catalogue.po())
    path.with_suffix(".mo").write_bytes(catalogue.mo())
    return [
        *(f"{language}: dropped {_with_translation(each)}" for each in _missing(stored, template)),
        *(f"{language}: to translate {_shown(each)}" for each in catalogue if _untranslated(each)),
        f"{language}: {len(catalogue)} messages.",
    ]


def _translation(message: Message, old: Message | None, language: str) -> Ids:
    if old is not None and _key(old) == _key(message) and not _untranslated(old):
        strings = _strings(old)
    elif language == SOURCE_LANGUAGE:
        strings = _ids(message)
    else:
        strings = ("",)
    return strings if message.pluralizable else strings[0]


def _ids(message: Message) -> tuple[str, ...]:
    """The text; with a plural both."""
    return _each(message.id)


def _strings(message: Message) -> tuple[str, ...]:
    """The translation; with a plural one for each form."""
    return _each(message.string)


def _each(texts: str | Sequence[str] | None) -> tuple[str, ...]:
    return (texts or "",) if isinstance(texts, str | None) else tuple(texts)


# --- The check ----------------------------------------------------------------------------------


def find_problems(root: Path, home: Path, languages: Sequence[str]) -> list[str]:
    """One line for each thing that keeps a reader from seeing every text in their language."""
    template = extract_messages(root)
    problems = []
    for language in languages:
        path = catalogue_path(home, language)
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
        problems += [
            f"{name}: {problem}" for problem in catalogue_problems(path, language, template)
        ]
    for path in _template_files(root):
        source = path.read_text(encoding="utf-8")
        problems += [
            f"{path.relative_to(root).as_posix()}:{line}: not translatable: “{text}”"
            for line, text in bare_text(source, html=path.suffix == ".html")
        ]
    return problems


def catalogue_problems(path: Path, language: str, template: Catalog) -> Iterator[str]:
    if not path.exists():
        yield "does not exist"
        return
    stored = read_catalogue(path, language)
    for message in _missing(template, stored):
        yield f"lacks {_shown(message)} of {', '.join(sorted({file for file, _line in message.locations}))}"
    for message in [*_missing(stored, template), *stored.obsolete.values()]:
        yield f"no longer used: {_shown(message)}"
    for message in stored:
        if not message.id:
            continue
        if _untranslated(message):
            yield f"not translated: {_shown(message)}"
        elif message.fuzzy:
            yield f"fuzzy: {_shown(message)}"
        elif wrong := placeholder_problem(message):
            yield f"{wrong}: {_shown(message)}"
    compiled = path.with_suffix(".mo")
    if not compiled.exists() or compiled.read_bytes() != stored.mo():
        yield f"{compiled.name} is not what it compiles to"


def _missing(wanted: Catalog, there: Catalog) -> list[Message]:
    """Messages of `wanted` that `there` lacks; the same text with and without a plural are two messages."""
    keys = {_key(message) for message in there}
    return [message for message in wanted if message.id and _key(message) not in keys]


def _key(message: Message) -> tuple[str | None, tuple[str, ...]]:
    return message.context, _ids(message)


def _untranslated(message: Message) -> bool:
    return bool(message.id) and not all(_strings(message))


def _shown(message: Message) -> str:
    text = " / ".join(_ids(message))
    return f"“{text}”" + (f" ({message.context})" if message.context else "")


def _with_translation(message: Message) -> str:
    """For a text that goes: its translation is often wanted for the one that comes instead."""
    return f"{_shown(message)} = “{' / '.join(_strings(message))}”"


# %% first: it is no placeholder, but must not be read as the start of one. No blank as a flag, though
# Python knows it: "100% sure" has no placeholder.
_PERCENT = re.compile(
    r"%%|%\(\w+\)[#0\-+]?[\d.]*[diouxXeEfFgGcrsa]|%[#0\-+]?[\d.]*[diouxXeEfFgGcrsa]"
)
_BRACES = re.compile(r"\{\w*\}")


def placeholders(text: str) -> Counter[str]:
    """What is filled in when the text is shown; a lone % that would make that fail counts as one.

    What has a name counts once: a translation may repeat it.
    """
    found = [each for each in _PERCENT.findall(text) if each != "%%"] + _BRACES.findall(text)
    named = {each for each in found if "(" in each or len(each) > len("{}")}
    lone = ["%"] * _PERCENT.sub("", text).count("%")
    return Counter([*named, *(each for each in found if each not in named), *lone])


def placeholder_problem(message: Message) -> str:
    """What is wrong with the placeholders of a translation; empty if nothing is.

    The last plural form serves the most numbers and must have those of the plural. Others may have
    those of the singular instead, which in many languages names no number.
    """
    strings = _strings(message)
    one, *many = (placeholders(text) for text in _ids(message))
    allowed = [[one, *many]] * (len(strings) - 1) + [many or [one]]
    for text, right in zip(strings, allowed, strict=True):
        have = placeholders(text)
        if have not in right:
            wanted = " ".join(sorted(right[-1].elements())) or "none"
            return f"placeholders are {' '.join(sorted(have.elements())) or 'none'} instead of {wanted}"
    return ""
