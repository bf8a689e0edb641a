"""Path converters."""

from django.urls.converters import IntConverter


class RowConverter(IntConverter):
    """A row's id or number: digits that fit the database's integers, so that a longer one is a 404 and no error."""

    regex = "[0-9]{1,18}"
