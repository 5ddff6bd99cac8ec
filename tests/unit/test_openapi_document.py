"""The committed OpenAPI document, and what would break its readers."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.openapi import COMMITTED, PROBLEMS, breaking, document, problems_of, text_of
from workers.shared.services.errors import ServiceError


async def test_the_committed_document_is_what_the_gateway_serves() -> None:
    said = "run `python -m tests.openapi`"
    served = await document()
    assert text_of(served) == COMMITTED.read_text(), said
    assert problems_of(served) == PROBLEMS.read_text(), said
    # Other tests may have loaded refusals of their own.
    own = (kind for kind in _below(ServiceError) if kind.__module__.startswith("workers."))
    for kind in own:
        assert f"| {kind.status} | `{kind.kind}` |" in PROBLEMS.read_text()


def _below(kind: type[ServiceError]) -> Iterator[type[ServiceError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def _of(
    *, sent: dict[str, Any] | None = None, answered: dict[str, Any] | None = None, **operation: Any
) -> dict[str, Any]:
    schemas = {"Sent": {"type": "object", **(sent or {})}, "Answered": answered or {}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Sent"}}}}
    answer = {
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Answered"}}}
    }
    whole = {"operationId": "make", "requestBody": body, "responses": {"200": answer}, **operation}
    return {"paths": {"/a": {"post": whole}}, "components": {"schemas": schemas}}


TEXT = {"type": "string"}
NAME = {"name": "name", "in": "query"}


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (_of(), {"paths": {}}, ["POST /a: is gone"]),
        (_of(), _of(operationId="create"), ["POST /a: was make, and is create"]),
        (_of(parameters=[NAME]), _of(), ["POST /a: takes no query parameter name any more"]),
        (_of(), _of(parameters=[NAME]), []),
        (
            _of(parameters=[NAME]),
            _of(parameters=[{**NAME, "required": True}]),
            ["POST /a: needs the query parameter name"],
        ),
        (_of(), _of(sent={"required": ["a"]}), ["POST /a takes: a is needed now"]),
        (_of(sent={"required": ["a"]}), _of(), []),
        (_of(sent={"properties": {"a": TEXT}}), _of(), ["POST /a takes: no a any more"]),
        (
            _of(sent={"properties": {"a": TEXT}}),
            _of(sent={"properties": {"a": {"type": "integer"}, "b": TEXT}}),
            ["POST /a takes a: was string, and is integer"],
        ),
        (
            _of(sent={"properties": {"a": {**TEXT, "enum": ["x", "y"]}}}),
            _of(sent={"properties": {"a": {**TEXT, "enum": ["x", "z"]}}}),
            ["POST /a takes a: no y any more"],
        ),
        (
            _of(answered={"properties": {"a": TEXT, "b": TEXT}, "required": ["b"]}),
            _of(answered={"properties": {"b": TEXT}}),
            ["POST /a answers: b is not always there now", "POST /a answers: no a any more"],
        ),
        (_of(), _of(responses={"201": {}}), ["POST /a: answers no 200 any more"]),
    ],
)
def test_what_a_client_would_miss_is_named(
    before: dict[str, Any], after: dict[str, Any], says: list[str]
) -> None:
    assert sorted(breaking(before, after)) == says
