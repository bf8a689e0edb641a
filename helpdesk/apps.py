"""The project package as an app: system checks and commands."""

from django.apps import AppConfig


class HelpdeskConfig(AppConfig):
    name = "helpdesk"

    def ready(self) -> None:
        from helpdesk import checks  # noqa: F401  registers the system checks
