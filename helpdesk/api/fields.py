"""Strict input: JSON types as they are, no unknown fields. A typo is an error, not a silent no-op."""

from collections.abc import Mapping
from datetime import UTC, timedelta
from typing import Any, ClassVar, Final

from django.core.validators import RegexValidator
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.parsers import JSONParser

from helpdesk.api.problems import PayloadTooLarge

# What fits the database's integers; the same as the addresses take.
LARGEST: Final = 10**18 - 1


class StrictJSONParser(JSONParser):
    """JSON that can be stored: no text that is not Unicode, not nested without end, not larger than a form may be."""

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        from django.conf import settings

        request = (parser_context or {}).get("request")
        length = int(request.META.get("CONTENT_LENGTH") or 0) if request else 0
        if length > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise PayloadTooLarge
        try:
            data = super().parse(stream, media_type, dict(parser_context or {}))
            _require_unicode(data)
        except RecursionError as error:
            raise ParseError(_("This is nested too deeply.")) from error
        return data


def _require_unicode(data: Any) -> None:
    """JSON can name half of a surrogate pair, which is no character; nothing can store or print it."""
    if isinstance(data, str):
        try:
            data.encode()
        except UnicodeEncodeError as error:
            raise ParseError(_("Half of a surrogate pair is no character.")) from error
    elif isinstance(data, dict):
        for key, value in data.items():
            _require_unicode(key)
            _require_unicode(value)
    elif isinstance(data, list):
        for each in data:
            _require_unicode(each)


class Text(serializers.CharField):
    """A JSON string; no number made into one."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


# Something besides white space, and no null character, which PostgreSQL cannot store.
_SOME_TEXT: Final = r"^[^\x00]*[^\s\x00][^\x00]*$"


def some_text(max_length: int, **kwargs: Any) -> Text:
    """A text that must say something, of so many characters at the most."""
    message = _("This must not be empty.")
    return Text(max_length=max_length, validators=[RegexValidator(_SOME_TEXT, message)], **kwargs)


class Whole(serializers.IntegerField):
    """A JSON number without a fraction: "60" and true are none, 60.0 is one. In an address, digits."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"min_value": 0, "max_value": LARGEST, **kwargs})

    def to_internal_value(self, data: Any) -> int:
        if isinstance(self.root.initial_data, QueryDict):
            if not (isinstance(data, str) and data.isascii() and data.isdecimal()):
                self.fail("invalid")
        elif type(data) is float and data.is_integer():
            data = int(data)
        elif type(data) is not int:
            self.fail("invalid")
        return int(super().to_internal_value(data))


class Flag(serializers.BooleanField):
    """true or false; in an address those words."""

    def to_internal_value(self, data: Any) -> bool:
        words = {"true": True, "false": False}
        if isinstance(self.root.initial_data, QueryDict):
            if data not in words:
                self.fail("invalid", input=data)
            return words[data]
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Choice(serializers.ChoiceField):
    """One of the words."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            self.fail("invalid_choice", input=data if isinstance(data, str) else "…")
        return data


class Instant(serializers.DateTimeField):
    """An instant in UTC, ISO 8601 with Z, whatever the reader's zone."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(default_timezone=UTC, **kwargs)

    def to_internal_value(self, value: Any) -> Any:
        if not isinstance(value, str):
            self.fail("invalid", format="YYYY-MM-DDThh:mm:ssZ")
        return super().to_internal_value(value)


@extend_schema_field({"type": "integer", "format": "int64"})
class Milliseconds(serializers.Field[Any, Any, int, Any]):
    """A duration. For output only."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(read_only=True, **kwargs)

    def to_representation(self, value: timedelta) -> int:
        return round(value.total_seconds() * 1000)


class Input(serializers.Serializer[Any]):
    """A body, or the query of an address, in which every field has to be known, given once, and not empty in an address."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            wrong = {
                name: [_("There is no such field.")] for name in data if name not in self.fields
            }
            if isinstance(data, QueryDict):
                wrong |= {
                    name: [_("This was given more than once.")]
                    for name, values in data.lists()
                    if len(values) > 1
                    and name in self.fields
                    and not isinstance(self.fields[name], serializers.ListField)
                }
                # Left alone, DRF takes an empty value for none: a lost cursor would begin anew, for ever.
                wrong |= {
                    name: [_("This must not be empty.")]
                    for name, values in data.lists()
                    if "" in values and name in self.fields
                }
            if wrong:
                raise ValidationError(wrong)
        return super().to_internal_value(data)


class Output(serializers.Serializer[Any]):
    """What an endpoint answers with. Read from attributes, written nowhere."""

    # For the OpenAPI document; set by `helpdesk.api.schema.example`.
    example: ClassVar[Mapping[str, Any]] = {}
