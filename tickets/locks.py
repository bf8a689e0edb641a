"""The team lock: the first step of every write on a ticket, and the only place that takes it.

Order everywhere: team → membership → ticket → task. Whoever holds the team's lock sees a team in
which roles, assignments, statuses and intents stand still.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable

from helpdesk.errors import Busy, NotAllowed, NotFound
from tickets.models import Membership, Team, User
from tickets.states import STAFF, Role

_held: ContextVar[frozenset[int]] = ContextVar("teams_locked_by_this_thread", default=frozenset())

# First key of the advisory locks below; any constant that nothing else in the database uses.
_LANE = 0x7EA
_AUDIT_LANE = 0x7EB


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts, as read under the team lock. `membership_id` is None for a superuser from outside the team."""

    user_id: int
    name: str
    role: Role
    membership_id: int | None

    @property
    def is_staff(self) -> bool:
        return self.role in STAFF

    def require_staff(self) -> None:
        """Raises `NotAllowed` for customers."""
        if not self.is_staff:
            raise NotAllowed

    def require_admin(self) -> None:
        """Raises `NotAllowed` unless the actor administers the team."""
        if self.role != Role.ADMIN:
            raise NotAllowed


@contextmanager
def locked_teams(team_ids: list[int]) -> Iterator[list[Team]]:
    """Open the transaction and lock these teams, in id order so that two callers cannot deadlock.

    NO KEY: rows that reference the team (every new ticket) must not block on it. Durable: nested in
    another transaction the lock would outlive the block, and a rollback outside would undo what the
    caller was told had happened.

    Raises `NotFound` if one of them does not exist, `Busy` if the wait exceeds the database's
    `lock_timeout`.
    """
    with transaction.atomic(durable=True):
        wanted = (
            Team.objects.select_for_update(no_key=True, of=("self",))
            .filter(pk__in=team_ids)
            .order_by("id")
        )
        try:
            teams = list(wanted)
        except OperationalError as error:
            if isinstance(error.__cause__, LockNotAvailable):
                raise Busy from error
            raise
        if len(teams) != len(set(team_ids)):
            raise NotFound
        token = _held.set(frozenset(team_ids))
        try:
            yield teams
        finally:
            _held.reset(token)


@contextmanager
def locked_team(team_id: int) -> Iterator[Team]:
    """`locked_teams` for one."""
    with locked_teams([team_id]) as (team,):
        yield team


def locked_user(user_id: int) -> User:
    """Lock an account after the teams: becoming inactive and joining a team must not cross.

    Raises `NotFound`.
    """
    user = User.objects.select_for_update(no_key=True, of=("self",)).filter(pk=user_id).first()
    if user is None:
        raise NotFound
    return user


def require_team_lock(team_id: int) -> None:
    """For functions that rely on the lock: a caller that forgot it fails at once, not once a year."""
    if team_id not in _held.get() or not connection.in_atomic_block:
        raise RuntimeError(f"team {team_id} must be locked here")


def actor_under_lock(team: Team, user_id: int) -> Actor:
    """The actor's standing in the locked team.

    A superuser acts as an administrator of every team. Raises `NotFound` for anybody else who is no
    member: a team that is not yours does not exist for you. Inactive accounts may do nothing.
    """
    require_team_lock(team.pk)
    membership = (
        Membership.objects.select_related("user")
        .filter(team=team, user_id=user_id, user__is_active=True)
        .first()
    )
    if membership is not None and not membership.user.is_superuser:
        user, role = membership.user, Role(membership.role)
    else:
        outsider = User.objects.filter(pk=user_id, is_active=True, is_superuser=True).first()
        if outsider is None:
            raise NotFound
        user, role = outsider, Role.ADMIN
    return Actor(
        user_id=user.pk,
        name=user.display_name,
        role=role,
        membership_id=membership.pk if membership else None,
    )


def site_admin(user_id: int) -> Actor:
    """The actor for what belongs to no team. Raises `NotAllowed` for anybody but an active superuser."""
    user = User.objects.filter(pk=user_id, is_active=True, is_superuser=True).first()
    if user is None:
        raise NotAllowed
    return Actor(user_id=user.pk, name=user.display_name, role=Role.ADMIN, membership_id=None)


@contextmanager
def team_lane(team_id: int) -> Iterator[bool]:
    """True if no other worker is processing this team's reminders; held until the block ends.

    A big team's sets queue behind each other here, without waiting: the worker that gets False goes
    on with another team instead of blocking on the team's row. People's writes never take it. A
    session lock, so it dies with its session (a killed worker blocks nobody).
    """
    free = _advisory("pg_try_advisory_lock", team_id)
    try:
        yield free
    finally:
        if free:
            _leave(_LANE, team_id)


@contextmanager
def audit_lane() -> Iterator[bool]:
    """True if no other audit is running; held until the block ends, or the session dies."""
    free = _advisory("pg_try_advisory_lock", 0, lane=_AUDIT_LANE)
    try:
        yield free
    finally:
        if free:
            _leave(_AUDIT_LANE, 0)


def _leave(lane: int, key: int) -> None:
    """Give the lane back. A session that cannot is broken, and must not live on with it: its locks die with it."""
    try:
        _advisory("pg_advisory_unlock", key, lane=lane)
    except (DatabaseError, InterfaceError):
        connection.close()


def _advisory(function: str, key: int, *, lane: int = _LANE) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s, %s)", [lane, key])
        (done,) = cursor.fetchone()
    return bool(done)
