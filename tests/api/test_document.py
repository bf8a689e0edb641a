"""The OpenAPI document is valid, complete, and the one that is committed."""

import json
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from referencing import Registry, Resource

from helpdesk.api.schema import openapi

COMMITTED = settings.BASE_DIR / "docs" / "openapi.json"


def operations() -> list[Any]:
    return [
        pytest.param(each, id=each["operationId"])
        for path in openapi()["paths"].values()
        for each in path.values()
    ]


def test_the_document_validates() -> None:
    validate(openapi())


def test_the_generator_has_no_warnings(tmp_path: Any) -> None:
    call_command("spectacular", "--fail-on-warn", "--validate", f"--file={tmp_path / 'x'}")


def test_the_committed_document_is_what_the_code_generates() -> None:
    """If not: `make openapi`, and look at what the change means for clients."""
    assert json.loads(COMMITTED.read_text()) == json.loads(json.dumps(openapi(), default=str))


@pytest.mark.django_db
def test_it_is_served_in_one_language_and_needs_no_token(client: Client) -> None:
    for language in ("zh-hans", "en"):
        answer = client.get("/api/schema/", headers={"Accept-Language": language})
        assert answer.json() == json.loads(COMMITTED.read_text())


@pytest.mark.django_db
def test_the_pages_of_the_reference_load_nothing_from_elsewhere(
    client: Client, plain_static: None
) -> None:
    page = client.get("/api/docs/").content.decode()
    assert "swagger-ui" in page
    assert "https://" not in page.replace("https://github.com", "")
    assert "//cdn" not in page


@pytest.mark.parametrize("described", operations())
def test_every_operation_says_what_it_takes_answers_and_refuses(described: Any) -> None:
    assert described["summary"]
    answers = described["responses"]
    assert {"405", "406", "503"} <= set(answers)
    assert "401" in answers
    assert (described["operationId"] == "sign_in") != ("security" in described)
    for status, answer in answers.items():
        assert answer["description"]
        content = answer.get("content", {})
        if status == "204":
            assert content == {}
        else:
            (media_type,) = content
            assert media_type == (
                "application/json" if status < "3" else "application/problem+json"
            )
    if "requestBody" in described:
        assert {"400", "413", "415", "429"} <= set(answers)


@pytest.mark.parametrize("described", operations())
def test_every_example_is_what_its_schema_says(described: Any) -> None:
    document = openapi()
    registry: Registry[Any] = Registry().with_resource(
        "urn:api", Resource.from_contents(document, default_specification=_specification())
    )
    bodies = [described.get("requestBody", {}), *described["responses"].values()]
    shown = [
        (content["schema"], example["value"])
        for body in bodies
        for content in body.get("content", {}).values()
        for example in content.get("examples", {}).values()
    ]
    for schema, value in shown:
        where = {"$ref": f"urn:api{schema['$ref']}"} if "$ref" in schema else schema
        Draft202012Validator(where, registry=registry).validate(value)
    with_content = [body for body in bodies if body.get("content")]
    assert len(shown) >= len(with_content), "every body has an example"


def _specification() -> Any:
    from referencing.jsonschema import DRAFT202012

    return DRAFT202012


def test_every_input_is_closed() -> None:
    document = openapi()
    for path in document["paths"].values():
        for each in path.values():
            for content in each.get("requestBody", {}).get("content", {}).values():
                name = content["schema"]["$ref"].rpartition("/")[2]
                assert document["components"]["schemas"][name]["additionalProperties"] is False


def test_links_lead_to_operations_and_name_their_parameters() -> None:
    by_id = {
        each["operationId"]: each for path in openapi()["paths"].values() for each in path.values()
    }
    count = 0
    for each in by_id.values():
        for answer in each["responses"].values():
            for link in answer.get("links", {}).values():
                known = {
                    parameter["name"] for parameter in by_id[link["operationId"]]["parameters"]
                }
                assert set(link["parameters"]) <= known
                count += 1
    assert count > 40
