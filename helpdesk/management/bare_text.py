"""Words in templates that nobody marked for translation."""

import re
import unicodedata
from html.parser import HTMLParser

from django.template.base import DebugLexer, TokenType

# Attributes that people read or hear.
_SPOKEN = frozenset({"alt", "aria-description", "aria-label", "placeholder", "title"})
# What stands in these is for machines, or is typed just so in every language.
_LITERAL = frozenset({"code", "kbd", "samp", "script", "style"})


def bare_text(source: str, *, html: bool = True) -> list[tuple[int, str]]:
    """(line, text) of each piece of a template that people read and that no translation tag covers.

    Template tags become blanks of the same length, and so does what a translation or comment tag
    encloses, so that what is left are the words somebody typed into the page. Signs and single Latin
    letters are not words.
    """
    rest = _without_tags(source)
    if html:
        parser = _Reader()
        parser.feed(rest)
        parser.close()
        return parser.found
    return [
        (number, _tidy(line))
        for number, line in enumerate(rest.split("\n"), start=1)
        if _is_words(line)
    ]


def _without_tags(source: str) -> str:
    """The source with everything blank that is not text of the page, line breaks excepted."""
    kept = []
    inside: str | None = None
    for token in DebugLexer(source).tokenize():
        assert token.position is not None  # The debug lexer knows it for every token.
        start, end = token.position
        text = source[start:end]
        words = token.contents.split() if token.token_type == TokenType.BLOCK else []
        name = words[0] if words else ""
        if inside:
            inside = None if name == f"end{inside}" else inside
            text = _blank(text)
        elif token.token_type != TokenType.TEXT:
            inside = name if name in ("blocktranslate", "blocktrans", "comment") else None
            text = _blank(text)
        kept.append(text)
    return "".join(kept)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _tidy(text: str) -> str:
    """Without the blanks that tags have left."""
    return " ".join(text.split())


def _is_words(text: str) -> bool:
    return bool(re.search(r"[^\W\d_]{2}", text)) or any(
        unicodedata.category(character) == "Lo" for character in text
    )


class _Reader(HTMLParser):
    """Collects what people read in a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[int, str]] = []
        self._literal: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _LITERAL:
            self._literal.append(tag)
        for name, value in attrs:
            if name in _SPOKEN and value and _is_words(value):
                self.found.append((self.getpos()[0], f"{name}={_tidy(value)}"))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._literal and self._literal[-1] == tag:
            self._literal.pop()

    def handle_data(self, data: str) -> None:
        if self._literal:
            return
        first = self.getpos()[0]
        self.found += [
            (first + offset, _tidy(line))
            for offset, line in enumerate(data.split("\n"))
            if _is_words(line)
        ]
