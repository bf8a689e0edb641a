"""Everything `make run` and `make test` need on one's own machine. Knows nothing of Django."""
