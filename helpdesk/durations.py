"""Durations in words, in the reader's language."""

from datetime import timedelta
from typing import Final

from django.utils.translation import gettext, gettext_lazy

_UNITS: Final = (
    (timedelta(days=1), gettext_lazy("%(count)d d")),
    (timedelta(hours=1), gettext_lazy("%(count)d h")),
    (timedelta(minutes=1), gettext_lazy("%(count)d min")),
    (timedelta(seconds=1), gettext_lazy("%(count)d s")),
)


def in_words(duration: timedelta) -> str:
    """The two largest units, rounded down: "1 d 3 h", "12 min 30 s", "0 s". Negative counts as nothing."""
    rest = max(duration, timedelta())
    counts = []
    for unit, _words in _UNITS:
        count, rest = divmod(rest, unit)
        counts.append(count)
    first = next((index for index, count in enumerate(counts) if count), len(counts) - 1)
    shown = [
        str(words) % {"count": count}
        for count, (_unit, words) in list(zip(counts, _UNITS, strict=True))[first : first + 2]
        if count or first == len(counts) - 1
    ]
    return " ".join(shown)


def lateness(duration: timedelta) -> str:
    """How late something was; less than a second is on time."""
    if duration < timedelta(seconds=1):
        return gettext("on time")
    return gettext("%(duration)s late") % {"duration": in_words(duration)}
