"""Settings of Temporal that cannot work are refused with a sentence, and none is ignored."""

import asyncio
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
from temporalio.service import RPCError, RPCStatusCode

from tests.support.cli import run_docflow
from workers.shared.cli.context import CliContext
from workers.shared.connect import connect, read_config, reason_of
from workers.shared.errors import SettingsError, TemporalUnreachable

KEY = "planted-secret"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"TEMPORAL_PROFILE": "nosuch"}, "'nosuch' not found; TEMPORAL_PROFILE is nosuch"),
        ({"TEMPORAL_CONFIG_FILE": "/nowhere"}, "TEMPORAL_CONFIG_FILE: there is no file /nowhere"),
        ({"TEMPORAL_CONFIG_FILE": "/"}, "TEMPORAL_CONFIG_FILE: there is no file /"),
        ({"TEMPORAL_TLS": "maybe"}, "TEMPORAL_TLS must be true or false, not 'maybe'"),
        ({"TEMPORAL_ADDRESS": "t:port"}, "TEMPORAL_ADDRESS must be host:port, not 't:port'"),
        ({"TEMPORAL_ADDRESS": "t:99999"}, "TEMPORAL_ADDRESS must be host:port, not 't:99999'"),
        ({"TEMPORAL_TLS": "no"}, "TEMPORAL_TLS must be true or false, not 'no'"),
        (
            {"TEMPORAL_TLS": "true", "TEMPORAL_TLS_CLIENT_CERT_PATH": "/nowhere"},
            "cannot be read: /nowhere: No such file or directory",
        ),
        ({"TEMPORAL_API_KEY_FILE": "/nowhere"}, "TEMPORAL_API_KEY cannot be read from its file"),
    ],
)
def test_a_setting_of_temporal_that_cannot_work_is_named(
    settings: Mapping[str, str], reason: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        read_config(settings)
    [problem] = refused.value.problems
    assert reason in problem


def test_a_file_that_cannot_be_read_is_named_without_its_content(tmp_path: Path) -> None:
    file = tmp_path / "temporal.toml"
    file.write_text(f'[profile.default]\napi_key = "{KEY}\n')
    with pytest.raises(SettingsError) as refused:
        read_config({"TEMPORAL_CONFIG_FILE": str(file)})
    assert f"TEMPORAL_CONFIG_FILE is {file}" in str(refused.value)
    assert KEY not in f"{refused.value!r}{refused.value.__cause__!r}"


@pytest.mark.parametrize(("word", "tls"), [("TRUE", True), ("1", True), ("false", False)])
def test_tls_is_a_flag(word: str, tls: bool) -> None:
    assert bool(read_config({"TEMPORAL_TLS": word}).get("tls")) is tls


def test_a_blank_setting_counts_as_not_set() -> None:
    blank = ("TEMPORAL_TLS", "TEMPORAL_CONFIG_FILE", "TEMPORAL_PROFILE", "TEMPORAL_API_KEY")
    assert read_config(dict.fromkeys(blank, " ")) == {}


def test_the_api_key_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "temporal_api_key").write_text(f"{KEY} \n")
    assert read_config({"DOCFLOW_SECRETS_DIR": str(tmp_path)}).get("api_key") == KEY
    named = {"TEMPORAL_API_KEY_FILE": str(tmp_path / "temporal_api_key")}
    assert read_config(named).get("api_key") == KEY


RAW = ("tonic", "Os {", "Status {", "transport::", "call error", "Failed client connect")


async def refusal(address: str) -> str:
    with pytest.raises(TemporalUnreachable) as refused:
        await connect(address)
    said = str(refused.value)
    assert said.startswith(f"cannot reach Temporal at {address}: ")
    assert [text for text in RAW if text in said] == []
    return said


async def test_why_temporal_does_not_answer_is_reported_in_words(unused_tcp_port: int) -> None:
    assert "the connection is refused" in await refusal(f"127.0.0.1:{unused_tcp_port}")
    assert "the host name is not known" in await refusal("no-such-host.invalid:7233")


async def test_what_is_not_temporal_is_reported_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.write_eof()
        # Closed with something unread, the connection is reset, and the answer may be lost.
        await reader.read()
        writer.close()

    async with await asyncio.start_server(web, "127.0.0.1", 0) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        assert "what listens there is not Temporal" in await refusal(address)
        monkeypatch.setenv("TEMPORAL_TLS", "true")
        assert "speaks no TLS" in await refusal(address)


async def test_what_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.shared.connect.CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert "no answer within 0.2 s" in await refusal(f"127.0.0.1:{silent.getsockname()[1]}")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("Timeout expired", "no answer in time"),
        ("Namespace nope is not found.", "Namespace nope is not found"),
        (
            'call: Status { code: PermissionDenied, message: "Request unauthorized." }',
            "Request unauthorized",
        ),
        ("error: Whatever { kind: Other }", "it does not answer"),
    ],
)
def test_the_servers_own_words_are_kept_and_others_are_not(said: str, reason: str) -> None:
    assert reason_of(RPCError(said, RPCStatusCode.UNAVAILABLE, b"")) == reason


async def test_an_address_that_is_none_is_named() -> None:
    with pytest.raises(SettingsError, match="invalid port number; TEMPORAL_ADDRESS is host:port"):
        await connect("localhost:x")


def test_status_names_a_wrong_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPORAL_PROFILE", "nosuch")
    done = run_docflow("status", "--json", context=CliContext({}))
    assert done.exit_code == 1
    assert "TEMPORAL_PROFILE is nosuch" in done.stdout
