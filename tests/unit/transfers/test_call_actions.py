"""Calls to a partner's server: what is sent, by which key, and which failure an answer is."""

import json
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.transfers.write_file import HttpCalling
from tests.support.imports.activities import environment
from tests.support.transfers.actions import TRANSFER, Endpoints
from tests.support.transfers.http_files import http_files
from workflows.shared.errors import TRANSIENT, UNAVAILABLE
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.settings import CallHttp


async def test_a_call_describes_the_transfer_with_one_key_for_every_attempt(
    tmp_path: Path,
) -> None:
    async with http_files() as server:
        partner = Partner(
            name="acme",
            kind=PlaceKind.HTTPS,
            host="http://127.0.0.1",
            port=server.port,
            token="env:TOKEN",
        )
        ends = Endpoints.at(tmp_path, partner, secrets={"TOKEN": "planted-token"})
        action = CallHttp(partner="acme", path="/hook?x=1", headers={"X-Account": "{accountId}"})
        order = ends.order(action, {"path": "/hook?x=1", "headers.X-Account": "A"})
        files = await ends.staged(order, **{"a.csv": b"one"})
        order = order.model_copy(update={"files": files})
        for _ in range(2):
            result = await environment().run(HttpCalling(ends.ports).call_http, order)
        (line, headers, body), second = server.requests
        assert line == "POST /hook?x=1 HTTP/1.1"
        assert headers["idempotency-key"] == second[1]["idempotency-key"] == f"{TRANSFER}-0"
        assert (headers["x-account"], headers["authorization"]) == ("A", "Bearer planted-token")
        sent = json.loads(body)
        assert sent["files"][0]["name"] == "a.csv" and sent["event"]["accountId"] == "A"
        assert "planted" not in result.model_dump_json()
        assert result.files == files
        for status, kind in (("422 No", TRANSIENT), ("503 Later", UNAVAILABLE)):
            server.status = status
            with pytest.raises(ApplicationError, match=status[:3]) as raised:
                await environment().run(HttpCalling(ends.ports).call_http, order)
            assert raised.value.type == kind
        server.status = None
        whole = order.model_copy(update={"action": action.model_copy(update={"body": "file"})})
        await environment().run(HttpCalling(ends.ports).call_http, whole)
        assert server.requests[-1][2] == b"one"
        named = {"path": "/{name}?x={{1}}", "headers.X-File": "{stem}{{}}"}
        await environment().run(
            HttpCalling(ends.ports).call_http, order.model_copy(update={"names": named})
        )
        line, headers, _ = server.requests[-1]
        assert line.startswith("POST /a.csv?x=%7B1%7D ") and headers["x-file"] == "a{}"
        hostile = order.model_copy(update={"names": {**order.names, "headers.X-A": "a\r\nb: c"}})
        with pytest.raises(ApplicationError, match="X-A"):
            await environment().run(HttpCalling(ends.ports).call_http, hostile)


async def test_a_call_needs_a_server(tmp_path: Path) -> None:
    folder = Partner(name="acme", kind=PlaceKind.FOLDER, container=str(tmp_path))
    ends = Endpoints.at(tmp_path, folder)
    order = ends.order(CallHttp(partner="acme", body="none"), {"path": "/"})
    with pytest.raises(ApplicationError, match="not an HTTPS server"):
        await environment().run(HttpCalling(ends.ports).call_http, order)
