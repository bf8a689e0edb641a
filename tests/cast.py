"""A fixed cast of people, so that a test only says what is special about it."""

from dataclasses import dataclass

from tests import factories
from tickets.models import Membership, Team, User
from tickets.states import Role


@dataclass(frozen=True, slots=True)
class Cast:
    team: Team
    other_team: Team
    admin: Membership
    agent: Membership
    second_agent: Membership
    customer: Membership
    second_customer: Membership
    stranger: Membership  # An admin, but of the other team.

    def user(self, name: str) -> User:
        membership: Membership = getattr(self, name)
        return membership.user


def make_cast() -> Cast:
    team = factories.TeamFactory(name="Support", slug="support")
    other_team = factories.TeamFactory(name="Elsewhere", slug="elsewhere")

    def member(username: str, role: Role, of: Team = team) -> Membership:
        return factories.MembershipFactory(team=of, role=role, user__username=username)

    return Cast(
        team=team,
        other_team=other_team,
        admin=member("admin", Role.ADMIN),
        agent=member("agent", Role.AGENT),
        second_agent=member("second_agent", Role.AGENT),
        customer=member("customer", Role.CUSTOMER),
        second_customer=member("second_customer", Role.CUSTOMER),
        stranger=member("stranger", Role.ADMIN, of=other_team),
    )
