"""`docflow gateway` and `docflow token sign`."""

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest

from tests.support.cli import SETTINGS
from tests.support.cli_fakes import FakeInstallation
from workers.shared.gateway.http.auth import Tokens
from workers.shared.settings.gateway import TokenSettings

KEY = "a key that is at least 32 bytes long"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was started, with which options."""
    calls: list[Any] = []
    process = ModuleType("workers.shared.gateway.process")

    async def run_gateway(
        environment: Mapping[str, str], *, host: str, port: int, metrics_port: int | None
    ) -> None:
        calls.append((dict(environment), host, port))

    vars(process).update(run_gateway=run_gateway)
    monkeypatch.setitem(sys.modules, "workers.shared.gateway.process", process)
    return calls


@pytest.mark.parametrize(
    ("arguments", "setting", "host", "port"),
    [
        ([], {}, "127.0.0.1", 8000),
        ([], {"DOCFLOW_HTTP_HOST": "0.0.0.0"}, "0.0.0.0", 8000),
        ([], {"DOCFLOW_HTTP_HOST": " "}, "127.0.0.1", 8000),
        (["--host", "::1", "--port", "0"], {"DOCFLOW_HTTP_HOST": "0.0.0.0"}, "::1", 0),
    ],
)
def test_the_gateway_listens_at_its_setting(
    arguments: list[str], setting: dict[str, str], host: str, port: int, started: list[Any]
) -> None:
    environment = {**SETTINGS, **setting}
    assert FakeInstallation(environment=environment).docflow("gateway", *arguments).exit_code == 0
    assert started == [(environment, host, port)]


async def test_a_token_is_one_that_the_gateway_accepts() -> None:
    environment = {"DOCFLOW_JWT_KEY": KEY}
    done = FakeInstallation(environment=environment).docflow(
        *("token", "sign", "--subject", "ada", "--organisation", "1", "--organisation", "7"),
        *("--role", "viewer", "--role", "operator", "--email", "ada@example.org"),
    )
    assert done.exit_code == 0, done.output
    who = await Tokens(TokenSettings.read(environment)).identify(done.stdout.strip())
    assert (who.subject, who.organisations, who.email) == ("ada", (1, 7), "ada@example.org")
    assert who.roles == {"viewer", "operator"}


def test_a_token_without_a_role_is_a_mappers(monkeypatch: pytest.MonkeyPatch) -> None:
    minted: list[dict[str, Any]] = []

    def mint_token(settings: TokenSettings, **claims: Any) -> str:
        minted.append(claims)
        return "a.b.c"

    monkeypatch.setattr("workers.shared.gateway.http.auth.mint_token", mint_token)
    done = FakeInstallation(environment={"DOCFLOW_JWT_KEY": KEY}).docflow(
        "token", "sign", "--subject", "ada", "--organisation", "1", "--hours", "2"
    )
    assert done.stdout == "a.b.c\n"
    assert (minted[0]["roles"], minted[0]["lasts"].total_seconds()) == (["mapper"], 7200)


@pytest.mark.parametrize(
    ("setting", "arguments", "says"),
    [
        ({}, [], "DOCFLOW_JWT_KEY"),
        ({"DOCFLOW_JWT_JWKS_URL": "https://id.example.org/keys"}, [], "identity provider"),
        ({"DOCFLOW_JWT_KEY": "short"}, [], "at least 32 bytes"),
        ({"DOCFLOW_JWT_KEY": KEY}, ["--role", "king"], "unknown role 'king'"),
        ({"DOCFLOW_JWT_KEY": KEY}, ["--subject", ""], "claim sub must have 1 to 200"),
        ({"DOCFLOW_JWT_KEY": KEY}, ["--subject", "a\nb"], "printable characters"),
        (
            {"DOCFLOW_JWT_KEY": KEY},
            ["--organisation", "9" * 20],
            "claim organisations must be a list of up to 1000 whole numbers from 1 to "
            "9007199254740992",
        ),
        (
            {"DOCFLOW_JWT_KEY": KEY},
            ["--email", "a" * 16_384],
            "the gateway would refuse this token: the token is longer than 16384 characters",
        ),
    ],
)
def test_a_token_that_cannot_be_made(
    setting: dict[str, str], arguments: list[str], says: str
) -> None:
    done = FakeInstallation(environment=setting).docflow(
        "token", "sign", "--subject", "ada", "--organisation", "1", *arguments
    )
    assert (done.exit_code, done.stdout) == (1, "")
    assert says in done.stderr and len(done.stderr.splitlines()) == 1
