"""Signing in by token: `Authorization: Bearer …`. Tokens are kept by knox, hashed and with an end."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from knox.auth import TokenAuthentication
from rest_framework.exceptions import AuthenticationFailed


class BearerAuthentication(TokenAuthentication):  # type: ignore[misc]  # knox has no types.
    def authenticate_credentials(self, token: bytes) -> Any:
        # Anything else is no token of ours, and may be no text that a database can look for.
        if not token.isalnum():
            raise AuthenticationFailed
        return super().authenticate_credentials(token)


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "helpdesk.api.auth.BearerAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A token from `POST /api/v1/auth/token/`.",
        }
