"""Requests that are addressed to another name, redirects, and forms of other sites."""

import httpx
import pytest
from fastapi import FastAPI

from tests.support.gateway import Stack, token
from workers.shared.errors import SettingsError
from workers.shared.gateway.http.hosts import host_of
from workers.shared.settings.gateway import GatewaySettings

pytestmark = pytest.mark.asyncio(loop_scope="session")

KEY = {"DOCFLOW_JWT_KEY": "k" * 32}


@pytest.fixture(scope="module")
def app(stack: Stack) -> FastAPI:
    """A gateway of several names, which keeps nothing between requests."""
    return stack.gateway(
        allowed_hosts=("gateway", "*.example.org"), public_url="https://docs.example.com"
    )


def client(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway")


@pytest.mark.parametrize(
    ("host", "path", "status"),
    [
        ("gateway", "/sign-in", 200),
        ("GATEWAY.:8000", "/sign-in", 200),
        ("docs.example.com", "/sign-in", 200),
        ("docflow.example.org:443", "/sign-in", 200),
        ("localhost:8000", "/sign-in", 200),
        ("127.0.0.1", "/sign-in", 200),
        ("[::1]:8000", "/sign-in", 200),
        ("example.org", "/sign-in", 421),
        ("evil.example", "/sign-in", 421),
        ("evil.example", "/openapi.json", 421),
        ("gateway.evil.example", "/sign-in", 421),
        ("evil.example@gateway", "/sign-in", 421),
        ("gateway/evil", "/sign-in", 421),
        ("gateway:80:80", "/sign-in", 421),
        ("", "/sign-in", 421),
        # As probes ask for it, by address.
        ("10.1.2.3:8000", "/health/live", 200),
    ],
)
async def test_names_that_the_gateway_answers_to(
    app: FastAPI, host: str, path: str, status: int
) -> None:
    async with client(app) as browser:
        answer = await browser.get(path, headers={"host": host})
    assert answer.status_code == status, answer.text
    if status == 421:
        assert "DOCFLOW_ALLOWED_HOSTS" in answer.json()["detail"]
        assert answer.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/sign-in/", "/sign-in"),
        ("/sign-in/?next=%2Finbox", "/sign-in?next=%2Finbox"),
        ("/uploads", "/sign-in?next=/uploads"),
        ("//sign-in/", None),
    ],
)
async def test_redirects_are_relative(app: FastAPI, path: str, location: str | None) -> None:
    async with client(app) as browser:
        answer = await browser.get(f"http://gateway{path}", headers={"host": "a.example.org"})
    found = answer.headers.get("location")
    assert found == location or (location is None and not (found or "").startswith("//"))


@pytest.mark.parametrize(
    ("headers", "is_ours"),
    [
        ({}, True),
        ({"origin": "http://gateway"}, True),
        ({"origin": "https://gateway"}, True),
        ({"origin": "http://gateway:80"}, True),
        ({"origin": "https://docs.example.com"}, True),
        ({"origin": "https://docs.example.com:443"}, True),
        ({"origin": "http://gateway:81"}, False),
        ({"origin": "https://evil.example"}, False),
        ({"origin": "null"}, False),
        ({"origin": "https://evil.example", "sec-fetch-site": "same-origin"}, False),
        ({"origin": "http://gateway", "sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site"}, False),
    ],
)
async def test_sign_in_takes_forms_of_its_own_pages(
    app: FastAPI, headers: dict[str, str], is_ours: bool
) -> None:
    async with client(app) as browser:
        answer = await browser.post("/sign-in", data={"token": token()}, headers=headers)
    assert answer.status_code == (303 if is_ours else 403), answer.text
    assert ("set-cookie" in answer.headers) == is_ours


@pytest.mark.parametrize(
    "wrong", ["https://docflow.example.org", "docflow.example.org:8000", "a/b", "a b", "*.*.org"]
)
async def test_settings_that_are_no_names_of_hosts_are_refused(wrong: str) -> None:
    with pytest.raises(SettingsError, match=r"is not a host name; write docflow\.example\.org"):
        GatewaySettings.read({**KEY, "DOCFLOW_ALLOWED_HOSTS": f"good.org, {wrong}"})
    right = "a.org, *.b.org, *, 10.0.0.1, ::1, [::1]"
    found = GatewaySettings.read(
        {**KEY, "DOCFLOW_ALLOWED_HOSTS": right, "DOCFLOW_PUBLIC_URL": "https://C.org:8443/x"}
    )
    assert found.hosts == ("a.org", "*.b.org", "*", "10.0.0.1", "::1", "[::1]", "c.org")
    assert host_of("a:b") is None
