"""The codec server: operators alone decrypt what Temporal's Web UI and CLI show."""

import base64
import json

import httpx
import pytest
from fastapi import FastAPI
from temporalio.api.common.v1 import Payload
from temporalio.client import Client

from tests.support.access import caller, signed
from tests.support.gateway import Stack, build_app
from workers.shared.gateway.http.problems import handle_problems
from workers.shared.payload_codec import EncryptingCodec
from workers.shared.plugin import docflow_plugin

pytestmark = pytest.mark.asyncio(loop_scope="session")

CELL = "planted-cell-4711"
UI = "https://temporal.example.org"
CODEC = EncryptingCodec({"one": b"k" * 32})


@pytest.fixture(scope="module")
def app(stack: Stack) -> FastAPI:
    """A gateway with a key, which the Web UI may ask."""
    config = stack.client.config()
    config["plugins"] = [docflow_plugin(codec=CODEC)]
    return build_app(Client(**config), stack.resources, cors_origins=(UI,))[0]


def operator(app: FastAPI) -> httpx.AsyncClient:
    return caller(app, signed(["operator"]))


def in_clear(value: str) -> dict[str, object]:
    """A payload as the contract has it."""
    data = base64.b64encode(json.dumps(value).encode()).decode()
    return {"metadata": {"encoding": "anNvbi9wbGFpbg=="}, "data": data}


async def test_an_operator_decodes_what_was_encoded(app: FastAPI) -> None:
    given = {"payloads": [in_clear(CELL), in_clear("x" * 1_500_000)]}
    async with operator(app) as browser:
        encoded = await browser.post("/codec/encode", json=given)
        assert encoded.status_code == 200, encoded.text
        ids = [each["metadata"]["encryption-key-id"] for each in encoded.json()["payloads"]]
        assert ids == [base64.b64encode(b"one").decode()] * 2
        sent = {"x-namespace": "default"}
        decoded = await browser.post("/codec/decode", content=encoded.content, headers=sent)
        assert decoded.json() == given
        assert decoded.headers["cache-control"] == "no-store"
        assert (await browser.post("/codec/decode", json=given)).json() == given


@pytest.mark.parametrize(
    ("roles", "status"),
    [(["viewer"], 403), (["mapper"], 403), ({"1": ["operator"]}, 403), (["admin"], 200)],
)
async def test_the_codec_is_for_operators_of_the_installation(
    app: FastAPI, roles: object, status: int
) -> None:
    async with caller(app, signed(roles)) as browser:
        for path in ("/codec/decode", "/codec/encode"):
            answer = await browser.post(path, json={"payloads": [in_clear(CELL)]})
            assert answer.status_code == status


async def test_nobody_decodes_without_a_token(app: FastAPI) -> None:
    async with caller(app, "") as browser:
        assert (await browser.post("/codec/decode", json={"payloads": []})).status_code == 401


async def test_the_audit_says_who_has_decoded(app: FastAPI) -> None:
    async with caller(app, signed(["admin"])) as browser:
        await browser.post("/codec/decode", json={"payloads": []})
        found = await browser.get("/api/v1/audit", params={"action": "decodePayloads", "limit": 1})
    [entry] = found.json()["items"]
    assert (entry["who"], entry["status"]) == ("nora", 200)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b'{"payloads": 1}', b'{"payloads": [{"x": 1}]}', b"\xff", b"[" * 9999],
)
async def test_a_body_without_payloads_is_refused(app: FastAPI, body: bytes) -> None:
    async with operator(app) as browser:
        answer = await browser.post("/codec/decode", content=body)
    assert answer.status_code == 422
    assert answer.json()["detail"] == 'the body must be JSON like {"payloads": []}'


async def test_a_body_that_no_message_of_temporal_fills_is_refused(app: FastAPI) -> None:
    async with operator(app) as browser:
        answer = await browser.post("/codec/decode", content=b" " * (8 * 1024 * 1024 + 1))
    assert answer.status_code == 413


async def test_a_gateway_without_the_key_names_it(stack: Stack, app: FastAPI) -> None:
    async with operator(app) as browser:
        encoded = await browser.post("/codec/encode", json={"payloads": [in_clear(CELL)]})
    async with operator(stack.app) as browser:
        answer = await browser.post("/codec/decode", content=encoded.content)
        clear = await browser.post("/codec/encode", json={"payloads": [in_clear(CELL)]})
    assert answer.status_code == 422
    assert "the key 'one', which isn't in DOCFLOW_PAYLOAD_KEYS" in answer.json()["detail"]
    assert clear.json() == {"payloads": [in_clear(CELL)]}


async def test_a_page_of_an_unreadable_run_is_not_available(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reading = FastAPI()
    handle_problems(reading, {})

    @reading.get("/run")
    async def read() -> None:  # pyright: ignore[reportUnusedFunction]
        [payload] = await CODEC.encode([Payload(data=b"x")])
        await EncryptingCodec({"two": b"t" * 32}).decode([payload])

    async with caller(reading, "") as browser:
        assert (await browser.get("/run")).status_code == 503
    assert "the key 'one', which isn't in DOCFLOW_PAYLOAD_KEYS" in caplog.text


@pytest.mark.parametrize(("origin", "status"), [(UI, 200), ("https://evil.example", 400)])
async def test_the_web_ui_may_ask_from_its_own_origin_alone(
    app: FastAPI, origin: str, status: int
) -> None:
    async with caller(app, "") as browser:
        answer = await browser.options(
            "/codec/decode",
            headers={
                "origin": origin,
                "access-control-request-method": "POST",
                "access-control-request-headers": "authorization,content-type,x-namespace",
            },
        )
    assert answer.status_code == status
    assert answer.headers.get("access-control-allow-origin") == (UI if origin == UI else None)
