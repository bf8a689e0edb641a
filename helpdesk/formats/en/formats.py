"""English, for readers everywhere: the month as a word, so that 1/2 is never a question."""

DATE_FORMAT = "j M Y"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "j M Y, H:i"
