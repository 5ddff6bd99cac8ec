"""Payloads are encrypted with keys that can be replaced, and those in clear stay readable."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError

from workers.shared.errors import SettingsError, UnreadablePayload
from workers.shared.payload_codec import KEY_ID, EncryptingCodec, open_codec
from workers.shared.plugin import docflow_plugin
from workers.shared.settings.payloads import PayloadSettings

OLD, NEW = b"o" * 32, b"n" * 32
CELL = "planted-cell-4711"
TEXT = base64.b64encode(OLD).decode()


def converter(codec: EncryptingCodec | None) -> DataConverter:
    """The one that clients and workers take from the plugin."""
    found = docflow_plugin(codec=codec).data_converter
    assert isinstance(found, DataConverter)
    return found


async def test_an_encrypted_payload_names_its_key_and_nothing_else() -> None:
    encrypted = converter(EncryptingCodec({"one": OLD}))
    [payload] = await encrypted.encode([CELL])
    assert dict(payload.metadata) == {"encoding": b"binary/encrypted", KEY_ID: b"one"}
    assert CELL.encode() not in payload.SerializeToString()
    assert await encrypted.decode([payload]) == [CELL]


async def test_a_value_is_encrypted_differently_each_time() -> None:
    codec = EncryptingCodec({"one": OLD})
    [first], [second] = [await codec.encode([Payload(data=b"x")]) for _ in range(2)]
    assert first.data != second.data


async def test_the_first_key_encrypts_and_all_decrypt() -> None:
    [old] = await converter(EncryptingCodec({"old": OLD})).encode([CELL])
    rotated = converter(EncryptingCodec({"new": NEW, "old": OLD}))
    [new] = await rotated.encode([CELL])
    assert new.metadata[KEY_ID] == b"new"
    assert await rotated.decode([old, new]) == [CELL, CELL]


async def test_payloads_in_clear_pass_through() -> None:
    [clear] = await converter(None).encode([CELL])
    assert await converter(EncryptingCodec({"one": OLD})).decode([clear]) == [CELL]


async def test_a_codec_that_only_decrypts_writes_in_clear() -> None:
    [old] = await converter(EncryptingCodec({"old": OLD})).encode([CELL])
    decrypts = converter(EncryptingCodec({"old": OLD}, encrypts=False))
    [clear] = await decrypts.encode([CELL])
    assert json.loads(clear.data) == CELL
    assert await decrypts.decode([old, clear]) == [CELL, CELL]
    failure = Failure()
    await decrypts.encode_failure(ApplicationError(CELL), failure)
    assert failure.message == CELL


@pytest.mark.parametrize("codec", [EncryptingCodec({"new": NEW}), None])
async def test_an_unknown_key_is_named_with_its_setting(codec: EncryptingCodec | None) -> None:
    payloads = await converter(EncryptingCodec({"2025-01": OLD})).encode([CELL])
    with pytest.raises(UnreadablePayload, match="'2025-01', which isn't in DOCFLOW_PAYLOAD_KEYS"):
        await converter(codec).decode(payloads)


@pytest.mark.parametrize("damage", ["changed", "cut", "empty", "other key"])
async def test_a_damaged_payload_is_refused(damage: str) -> None:
    [payload] = await converter(EncryptingCodec({"one": OLD})).encode([CELL])
    data = payload.data
    payload.data = {
        "changed": data[:-1] + bytes([data[-1] ^ 1]),
        "cut": data[:20],
        "empty": b"",
        "other key": data,
    }[damage]
    key = NEW if damage == "other key" else OLD
    with pytest.raises(UnreadablePayload, match="'one' is damaged, or DOCFLOW_PAYLOAD_KEYS"):
        await converter(EncryptingCodec({"one": key})).decode([payload])


async def test_failures_hide_message_trace_and_details() -> None:
    encrypted = converter(EncryptingCodec({"one": OLD}))
    failure = Failure()
    try:
        raise ApplicationError(CELL, CELL) from ValueError(CELL)
    except ApplicationError as error:
        await encrypted.encode_failure(error, failure)
    assert failure.message == failure.cause.message == "Encoded failure"
    assert CELL.encode() not in failure.SerializeToString()
    decoded = await encrypted.decode_failure(failure)
    assert isinstance(decoded, ApplicationError)
    assert (decoded.message, list(decoded.details)) == (CELL, [CELL])
    assert str(decoded.cause) == f"ValueError: {CELL}"


async def test_keys_come_by_reference(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{base64.urlsafe_b64encode(NEW).decode()}\n")
    environment = {"DOCFLOW_PAYLOAD_KEYS": f"new=file:{file}, old=env:OLD", "OLD": TEXT}
    codec = await open_codec(environment)
    assert codec is not None
    assert codec.key_id == "new"
    [old] = await EncryptingCodec({"old": OLD}).encode([Payload(data=b"x")])
    assert await codec.decode([old]) == [Payload(data=b"x")]
    reading = await open_codec({**environment, "DOCFLOW_PAYLOAD_KEYS": "clear,old=env:OLD"})
    assert reading is not None
    assert reading.key_id is None
    assert await open_codec({}) is None


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({}, "DOCFLOW_PAYLOAD_KEYS, key a: there is no secret env:KEY: the variable is not set"),
        ({"KEY": "short"}, "DOCFLOW_PAYLOAD_KEYS, key a: must be 32 bytes in base64"),
        ({"KEY": "\u00e4" * 44}, "DOCFLOW_PAYLOAD_KEYS, key a: must be 32 bytes in base64"),
    ],
)
async def test_a_key_that_cannot_be_used_is_named(
    environment: Mapping[str, str], reason: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        await open_codec({"DOCFLOW_PAYLOAD_KEYS": "a=env:KEY", **environment})
    [problem] = refused.value.problems
    assert problem.startswith(reason)
    assert not any(value in problem for value in environment.values())


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (TEXT, "must be ID=REFERENCE with commas"),
        (f"a={TEXT}", "must be ID=REFERENCE with commas"),
        ("clear", "must be ID=REFERENCE with commas"),
        ("a=env:A,clear", "must be ID=REFERENCE with commas"),
        ("a b=env:A", "must be ID=REFERENCE with commas"),
        ("a=env:A,", "must be ID=REFERENCE with commas"),
        ("a=env:A,a=env:B", "has two keys with one id"),
    ],
)
def test_a_setting_that_names_no_keys_is_refused_without_its_value(value: str, reason: str) -> None:
    [problem] = PayloadSettings.problems({"DOCFLOW_PAYLOAD_KEYS": value})
    assert problem.startswith(f"DOCFLOW_PAYLOAD_KEYS {reason}")
    assert TEXT not in problem


def test_clients_are_made_in_one_place() -> None:
    root = Path(__file__).parents[2]
    rooms = ("workers", "activities", "adapters", "workflows", "stack", "docflow")
    made = {
        str(path.relative_to(root))
        for room in rooms
        for path in (root / room).rglob("*.py")
        if "Client.connect(" in path.read_text()
    }
    # The stack asks a server whether it is well, and sends no payload.
    assert made == {"workers/shared/connect.py", "stack/temporal.py"}
