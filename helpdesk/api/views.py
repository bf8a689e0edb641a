"""The base of all endpoints: who asks, what they sent, and how an answer carries a version."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from helpdesk.api.fields import LARGEST, Input
from helpdesk.api.schema import openapi
from helpdesk.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from tickets.models import User


class ApiView(APIView):
    """An endpoint. Its methods parse, call one service or selector, and render."""

    http_method_names = ("get", "head", "post", "patch", "delete")

    def get_authenticate_header(self, request: Request) -> str:
        """The challenge of a 401; DRF would make it a 403 where nobody is asked for a token, as in signing in."""
        return "Bearer"

    @property
    def user(self) -> "User":
        """The person who asks; nobody gets here without signing in, unless the endpoint says so."""
        return cast("User", self.request.user)

    def body(self, of: type[Input]) -> dict[str, Any]:
        """The checked body. Raises DRF's `ValidationError`."""
        return _checked(of, self.request.data)

    def query(self, of: type[Input]) -> dict[str, Any]:
        """The checked query of the address. Raises DRF's `ValidationError`."""
        return _checked(of, self.request.query_params)

    def seen_version(self, body: Mapping[str, Any]) -> int:
        """The version the caller has seen, from the body or `If-Match`. Raises `InvalidInput` without either."""
        named = body.get("version")
        header = self.request.headers.get("If-Match")
        if header is None:
            if named is None:
                raise InvalidInput(
                    version=_("Say which version you have seen, here or in If-Match.")
                )
            return cast(int, named)
        tag = header.strip()
        digits = tag[1:-1]
        if not (
            len(tag) > 2
            and tag[0] == tag[-1] == '"'
            and digits.isascii()
            and digits.isdecimal()
            and len(digits) < len(str(LARGEST))
        ):
            raise InvalidInput(**{"If-Match": _("This is no ETag of a ticket.")})
        if named is not None and named != int(digits):
            raise InvalidInput(version=_("The body and If-Match name different versions."))
        return int(digits)


def _checked(of: type[Input], data: Any) -> dict[str, Any]:
    serializer = of(data=data)
    serializer.is_valid(raise_exception=True)
    return cast(dict[str, Any], serializer.validated_data)


def with_etag(body: Mapping[str, Any], *, status: int = 200, **headers: str) -> Response:
    """The answer with a ticket. Customers see no version, so they get no tag either."""
    if "version" in body:
        headers["ETag"] = f'"{body["version"]}"'
    return Response(body, status=status, headers=headers)


@contextmanager
def fields_named(**names: str) -> Iterator[None]:
    """A service's field errors under the names that the body has for them."""
    try:
        yield
    except InvalidInput as error:
        errors = error.data["errors"]
        raise InvalidInput(
            **{names.get(name, name): text for name, text in errors.items()}
        ) from error


class Public(ApiView):
    """For everybody, without a token."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()


@extend_schema(exclude=True)
class DocumentView(Public):
    """The OpenAPI document."""

    def get(self, request: Request) -> Response:
        return Response(openapi())


@extend_schema(exclude=True)
class NothingHere(Public):
    """Whatever else begins with /api/: a problem, and no page."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound
