"""Durations for templates."""

from datetime import datetime, timedelta

from django import template

from helpdesk import durations

register = template.Library()
register.filter("in_words", durations.in_words)
register.filter("lateness", durations.lateness)


@register.filter
def until(moment: datetime, now: datetime) -> timedelta:
    """From `now` to `moment`."""
    return moment - now


@register.filter
def since(moment: datetime, now: datetime) -> timedelta:
    """From `moment` to `now`."""
    return now - moment
