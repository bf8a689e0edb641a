"""How often somebody may: by person and by address, for signing in and for writing. Rates are in the settings.

Counted in Redis, so for all web processes together. A Redis that is away lets everybody pass: it
must not be what keeps people from working.
"""

from hashlib import sha256
from typing import Any

import structlog
from django.conf import settings
from redis.exceptions import RedisError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.throttling import SimpleRateThrottle

log = structlog.get_logger(__name__)


class Throttle(SimpleRateThrottle):
    """`scope` names the rate in `settings.THROTTLES`; an empty rate is no limit."""

    scope = ""

    def get_rate(self) -> str | None:
        return settings.THROTTLES[self.scope] or None

    def parse_rate(self, rate: str | None) -> tuple[int | None, int | None]:
        return (None, None) if rate is None else super().parse_rate(rate)

    def get_ident(self, request: Any) -> str:
        """The client's address. DRF's own reads a setting of its own when the module is loaded."""
        return str(super().get_ident(request) or "")

    def get_cache_key(self, request: Any, view: Any) -> str | None:
        who = self.who(request)
        return who and self.cache_format % {
            "scope": self.scope,
            # Hashed: it may be anything that somebody typed.
            "ident": sha256(who.encode(errors="replace")).hexdigest()[:32],
        }

    def who(self, request: Any) -> str | None:
        """Whom it counts; None: nobody."""
        raise NotImplementedError

    def allow_request(self, request: Any, view: Any) -> bool:
        if self.rate is None:
            return True
        try:
            return bool(super().allow_request(request, view))
        except (RedisError, OSError) as error:
            log.warning("throttle.redis_unreachable", error=str(error))
            return True


class SignInByAddress(Throttle):
    scope = "sign_in_by_address"

    def who(self, request: Any) -> str | None:
        return self.get_ident(request)


class SignInByName(Throttle):
    """Against guessing one person's password from many addresses."""

    scope = "sign_in_by_name"

    def who(self, request: Any) -> str | None:
        fields = getattr(request, "data", None)  # A body, or a form.
        if fields is None:
            fields = request.POST
        name = fields.get("username") if hasattr(fields, "get") else None
        return name.casefold() if isinstance(name, str) else None


class WritesByPerson(Throttle):
    scope = "writes_by_person"

    def who(self, request: Any) -> str | None:
        writes = request.method not in SAFE_METHODS and request.user.is_authenticated
        return str(request.user.pk) if writes else None


class WritesByAddress(Throttle):
    scope = "writes_by_address"

    def who(self, request: Any) -> str | None:
        return None if request.method in SAFE_METHODS else self.get_ident(request)
