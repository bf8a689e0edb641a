"""Tokens, and who one is."""

from typing import Any

from django.contrib.auth import authenticate
from django.utils.translation import gettext_lazy as _
from knox.models import AuthToken
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request
from rest_framework.response import Response

from helpdesk.api.schema import operation
from helpdesk.api.throttles import SignInByAddress, SignInByName
from helpdesk.api.views import ApiView
from notifications.selectors import unread_count
from tickets import selectors
from tickets.serializers import MeSerializer, SignInInput, TokenSerializer


class TokenView(ApiView):
    @property
    def _needs_token(self) -> bool:
        # The generator of the document asks without a request.
        return getattr(self.request, "method", "DELETE") == "DELETE"

    def get_permissions(self) -> list[Any]:
        return list(super().get_permissions()) if self._needs_token else []

    def get_authenticators(self) -> list[Any]:
        """A stale token must not keep anybody from getting a fresh one."""
        return super().get_authenticators() if self._needs_token else []

    def get_throttles(self) -> list[Any]:
        if not self._needs_token:
            return [SignInByAddress(), SignInByName()]
        return super().get_throttles()

    @operation(
        "sign_in",
        "Sign in",
        tag="session",
        takes=SignInInput,
        answers=TokenSerializer,
        status=201,
        refuses=[401],
        anonymous=True,
        description="Takes no `Idempotency-Key`: a token is shown once, and nobody keeps it.",
    )
    def post(self, request: Request) -> Response:
        values = self.body(SignInInput)
        user = authenticate(
            request._request, username=values["username"], password=values["password"]
        )
        if user is None:
            raise AuthenticationFailed(_("That name and password do not match."))
        token, secret = AuthToken.objects.create(user)
        shown = {"token": secret, "expires_at": token.expiry}
        # No cache on the way may keep it.
        return Response(
            TokenSerializer(shown).data, status=201, headers={"Cache-Control": "no-store"}
        )

    @operation(
        "sign_out",
        "Revoke the token in use",
        tag="session",
        answers=None,
        status=204,
        refuses=[429],
    )
    def delete(self, request: Request) -> Response:
        request.auth.delete()
        return Response(status=204)


class MeView(ApiView):
    @operation("me", "Who you are", tag="session", answers=MeSerializer)
    def get(self, request: Request) -> Response:
        shown = {
            "user": self.user,
            "time_zone": self.user.time_zone,
            "is_superuser": self.user.is_superuser,
            "memberships": selectors.memberships(user_id=self.user.pk),
            "unread": unread_count(user_id=self.user.pk),
        }
        return Response(MeSerializer(shown).data)
