"""The project package: settings, the Celery app, and the floor every app stands on."""
