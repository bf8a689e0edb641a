"""How dates and times are shown: short, and with a 24 hour clock in both languages."""
