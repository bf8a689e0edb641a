"""What the factories need of a cast."""

from typing import Protocol

from tickets.models import Team, User


class People(Protocol):
    @property
    def team(self) -> Team: ...
    def user(self, name: str) -> User: ...
