"""Self-correction: small checks find what cannot be, the runner records it, and mends what is certain.

`registry` says what a check is, `checks/` holds them, `look` reads, `record` writes down, `repair` mends
under the team lock, `runner` does one after the other. Everything reads PostgreSQL again; nothing
trusts a flag, and nothing waits for an event.
"""
