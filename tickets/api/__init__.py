"""The endpoints of teams, members and tickets. Thin: parse, call a service or selector, render."""
