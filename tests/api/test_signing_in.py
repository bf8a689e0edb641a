"""Tokens, their end, and how often somebody may try."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from knox.models import AuthToken
from redis import Redis

from tests.api.conftest import Api, As, problem
from tests.cast import Cast
from tests.factories import open_ticket
from tickets import services

TOKEN = "auth/token/"


@pytest.fixture
def credentials(cast: Cast) -> dict[str, str]:
    user = cast.user("agent")
    user.set_password("correct horse")
    user.save(update_fields=["password"])
    return {"username": "agent", "password": "correct horse"}


def test_a_token_is_shown_once_and_stored_hashed(by: As, credentials: Any) -> None:
    answer = by("").post(TOKEN, credentials)
    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store")
    secret = answer.json()["token"]
    stored = AuthToken.objects.get()
    assert secret not in (stored.digest, stored.token_key)
    assert answer.json()["expires_at"].endswith("Z")
    assert stored.expiry - timezone.now() > timedelta(days=29)
    me = by("").get("me/", Authorization=f"Bearer {secret}").json()
    assert (me["user"]["username"], me["memberships"][0]["role"]) == ("agent", "AGENT")


def test_revoking_ends_the_token_in_use_and_no_other(by: As, credentials: Any) -> None:
    one, two = (by("").post(TOKEN, credentials).json()["token"] for _each in range(2))
    assert by("").delete(TOKEN, Authorization=f"Bearer {one}").status_code == 204
    problem(by("").get("me/", Authorization=f"Bearer {one}"), 401, "not-authenticated")
    assert by("").get("me/", Authorization=f"Bearer {two}").status_code == 200


def test_an_expired_token_is_none(agent: Api, cast: Cast) -> None:
    AuthToken.objects.update(expiry=timezone.now() - timedelta(seconds=1))
    problem(agent.get("me/"), 401, "not-authenticated")


def test_a_closed_account_has_no_tokens_that_work(cast: Cast, by: As, credentials: Any) -> None:
    api = by("agent")
    root = cast.user("admin")
    root.is_superuser = True
    root.save(update_fields=["is_superuser"])
    services.deactivate_account(user_id=cast.user("agent").pk, actor_id=root.pk)
    problem(api.get("me/"), 401, "not-authenticated")
    problem(by("").post(TOKEN, credentials), 401, "not-authenticated")


@pytest.mark.parametrize(
    "wrong", [{"password": "x"}, {"username": "nobody"}, {"username": "AGENT"}]
)
def test_a_wrong_name_and_a_wrong_password_look_the_same(
    by: As, credentials: Any, wrong: Any
) -> None:
    said = problem(by("").post(TOKEN, {**credentials, **wrong}), 401, "not-authenticated")
    assert said["detail"] == "That name and password do not match."


def test_a_stale_token_keeps_nobody_from_a_fresh_one(by: As, credentials: Any) -> None:
    answer = by("").post(TOKEN, credentials, Authorization="Bearer stale")
    assert answer.status_code == 201


def test_a_session_of_the_pages_is_no_token(cast: Cast) -> None:
    """So no page of somebody else can make a browser write here."""
    client = Client()
    client.force_login(cast.user("agent"))
    problem(client.get("/api/v1/me/"), 401, "not-authenticated")


class TestThrottles:
    @pytest.fixture(autouse=True)
    def rates(self, settings: Any, own_broker: Redis) -> None:
        settings.CACHES = {
            "default": {**settings.CACHES["default"], "LOCATION": self.url(own_broker)}
        }
        settings.THROTTLES = {
            "sign_in_by_address": "4/m",
            "sign_in_by_name": "2/m",
            "writes_by_person": "3/m",
            "writes_by_address": "5/m",
        }

    @staticmethod
    def url(client: Redis) -> str:
        of = client.get_connection_kwargs()
        return f"redis://:{of.get('password') or ''}@{of['host']}:{of['port']}/{of['db']}"

    def too_many(self, answer: Any) -> None:
        problem(answer, 429, "too-many-requests")
        assert 0 < int(answer["Retry-After"]) <= 61

    def test_signing_in_by_name(self, by: As, credentials: Any) -> None:
        for _each in range(2):
            by("").post(TOKEN, {**credentials, "password": "x"})
        self.too_many(by("").post(TOKEN, credentials))
        self.too_many(by("").post(TOKEN, {**credentials, "username": "AGENT"}))

    def test_signing_in_by_address(self, by: As, cast: Cast) -> None:
        for number in range(4):
            by("").post(TOKEN, {"username": f"x{number}", "password": "x"})
        self.too_many(by("").post(TOKEN, {"username": "y", "password": "x"}))

    def test_the_page_counts_as_well(
        self, cast: Cast, credentials: Any, client: Client, plain_static: None
    ) -> None:
        for _each in range(2):
            client.post(reverse("login"), {**credentials, "password": "x"})
        refused = client.post(reverse("login"), credentials)
        assert refused.status_code == 429
        assert 0 < int(refused["Retry-After"]) <= 61
        assert "Too many attempts" in refused.content.decode()
        assert 'value="agent"' in refused.content.decode()
        assert client.get(reverse("login")).status_code == 200

    def test_writes_by_person_and_reads_never(self, cast: Cast, by: As) -> None:
        ticket = open_ticket(cast)
        address = f"teams/support/tickets/{ticket.number}/comments/"
        for _each in range(3):
            assert by("agent").post(address, {"body": "x"}).status_code == 201
        self.too_many(by("agent").post(address, {"body": "x"}))
        assert by("second_agent").post(address, {"body": "x"}).status_code == 201
        for _each in range(10):
            assert by("agent").get(address).status_code == 200

    def test_writes_by_address(self, cast: Cast, by: As) -> None:
        for name in ("agent", "second_agent", "customer", "admin", "second_customer"):
            by(name).post("notifications/read-all/")
        self.too_many(by("stranger").post("notifications/read-all/"))

    def test_behind_a_proxy_the_address_is_the_clients(
        self, by: As, cast: Cast, settings: Any
    ) -> None:
        settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "NUM_PROXIES": 1}
        for number in range(6):
            answer = by("").post(
                TOKEN,
                {"username": f"x{number}", "password": "x"},
                X_Forwarded_For=f"10.0.0.9, 10.0.0.{number}",
            )
            assert answer.status_code == 401
        settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "NUM_PROXIES": 0}
        for number in range(5):  # Without a proxy a client says what it likes, in vain.
            answer = by("").post(
                TOKEN,
                {"username": f"y{number}", "password": "x"},
                X_Forwarded_For=f"10.0.1.{number}",
            )
        self.too_many(answer)

    def test_a_redis_that_is_away_keeps_nobody_from_working(
        self, by: As, credentials: Any, settings: Any
    ) -> None:
        settings.CACHES = {
            "default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1"}
        }
        for _each in range(6):
            assert by("").post(TOKEN, credentials).status_code == 201
