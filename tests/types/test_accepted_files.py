"""Accepted rows become a file, and a signed call tells who loads them."""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import duckdb
import pytest
import pytest_asyncio
from temporalio.exceptions import ApplicationError

from activities.imports.store import SqlImportStore
from activities.shared.accepted_files import AcceptedFiles
from adapters.database.engine import open_database
from adapters.http import signature
from adapters.signed_webhook import SignedWebhook
from adapters.types.files import read_type
from adapters.types.store import SqlDeclaredTypes
from adapters.types.tables import STAGED, register_table
from tests.support.fresh_database import fresh_url
from tests.support.imports.activities import ActivityPorts, Killed, message_of
from tests.support.webhook import Receiver, receiving
from tests.types.conftest import Installation
from workers.imports.rehearsal import rehearsed
from workers.shared.errors import SettingsError
from workers.shared.settings.targets import TargetSettings
from workflows.imports.runs import Counts, HandlerOutcome
from workflows.shared.declared_types import DeclaredType
from workflows.shared.errors import NOT_YET, PERMANENT, RuleViolation

READINGS = """
name: readings
title: Readings
key: [meter]
unmapped: keep
target: {file: FORMAT, webhook: loader}
fields:
  meter: {kind: code, required: true}
  day: {kind: date}
  value: {kind: decimal, minimum: 0}
  estimated: {kind: boolean}
  rank: {kind: place}
  unit: {default: kWh}
"""
CONTENT = (
    b"meter,day,value,estimated,Note,rank\n"
    b"M-1,2025-01-02,1.50,yes,=x,=1\nM-2,,-1,,,\nM-3,,,no,,2nd\n"
)
SECRET = b"a secret of thirty-two characters"


@dataclass
class Loader:
    """An installation, and who loads its files."""

    installation: Installation
    receiver: Receiver

    @property
    def name(self) -> str:
        return "accepted/P1/T1"

    async def declare(self, format: str) -> DeclaredType:
        declared = read_type(READINGS.replace("FORMAT", format), "readings.yaml")
        await self.installation.types.apply(declared)
        return declared

    async def imported(self, content: bytes = CONTENT, **fields: Any) -> HandlerOutcome:
        return await self.installation.imported("readings", content, **fields)

    async def file(self, format: str) -> bytes:
        path = self.installation.ports.folder / "file"
        await self.installation.ports.blobs.download(f"{self.name}.{format}", path)
        return path.read_bytes()


@pytest_asyncio.fixture
async def loader(tmp_path: Path) -> AsyncGenerator[Loader]:
    async with open_database(fresh_url()) as database, receiving() as receiver:
        receivers = {"loader": SignedWebhook(receiver.url, (SECRET,))}
        own = Installation(
            database,
            SqlDeclaredTypes(database),
            SqlImportStore(database),
            ActivityPorts(tmp_path),
            receivers,
        )
        yield Loader(own, receiver)


async def test_a_file_and_a_signed_call_tell_what_was_accepted(loader: Loader) -> None:
    declared = await loader.declare("jsonl")
    done = await loader.imported()
    assert done.counts == Counts(created=2, rejected=1)
    assert "The rows are in accepted/P1/T1.jsonl." in str(done.note)
    rows = [json.loads(line) for line in (await loader.file("jsonl")).splitlines()]
    empty = {"project_id": "P1", "day": None, "value": None, "unit": "kWh", "other": None}
    assert rows == [
        {
            **empty,
            "meter": "M-1",
            "day": "2025-01-02",
            "value": "1.5",
            "estimated": True,
            "rank": 1,
            "other": {"Note": "=x"},
        },
        {**empty, "meter": "M-3", "estimated": False, "rank": 2},
    ]
    [(line, headers, body)] = loader.receiver.requests
    assert line.startswith("POST /hook")
    told = json.loads(body)
    file = await loader.installation.ports.blobs.stat(f"{loader.name}.jsonl")
    assert done.report is not None
    assert told["type"] == "rows.accepted"
    assert told["data"]["counts"] == {"accepted": 2, "rejected": 1}
    assert told["data"]["file"]["name"] == file.name
    assert told["data"]["file"]["size"] == file.size
    assert told["data"]["report"] == done.report.name
    assert told["data"]["type_digest"] == declared.digest
    given = (headers["webhook-id"], int(headers["webhook-timestamp"]))
    assert headers["webhook-signature"] == signature(SECRET, *given, body)


@pytest.mark.parametrize("format", ["csv", "parquet"])
async def test_files_hold_values_as_they_were_read(loader: Loader, format: str) -> None:
    await loader.declare(format)
    await loader.imported()
    path = loader.installation.ports.folder / f"rows.{format}"
    path.write_bytes(await loader.file(format))
    read = "read_csv" if format == "csv" else "read_parquet"
    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT meter, day::text, value::double, estimated, rank, other FROM {read}('{path}')"
        ).fetchall()
    assert found == [
        ("M-1", "2025-01-02", 1.5, True, 1, '{"Note": "=x"}'),
        ("M-3", None, None, False, 2, None),
    ]


async def test_another_attempt_sends_the_same_again(
    loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = await loader.declare("parquet")
    tell = AcceptedFiles.tell

    async def killed(*arguments: Any) -> None:
        await tell(*arguments)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(AcceptedFiles, "tell", killed)
        with pytest.raises(Killed):
            await loader.imported()
    first = await loader.file("parquet")
    monkeypatch.setattr(loader.installation.ports, "put", AsyncMock())
    assert (await loader.imported()).counts == Counts(created=2, rejected=1)
    assert await loader.file("parquet") == first
    (_, one, body), (_, two, again) = loader.receiver.requests
    assert (one["webhook-id"], body) == (two["webhook-id"], again)
    twin = STAGED[register_table(declared)]
    async with loader.installation.database.reading() as connection:
        assert (await connection.execute(twin.select())).all() == []


@pytest.mark.parametrize(
    ("answer", "type", "said"),
    [
        ("503 Busy", NOT_YET, "answered 503"),
        ("404 Not Found", PERMANENT, "answered 404: the rows are in accepted/P1/T1.csv"),
    ],
)
async def test_a_receiver_that_fails_is_told_later_or_asked_about(
    loader: Loader, answer: str, type: str, said: str
) -> None:
    await loader.declare("csv")
    loader.receiver.answers = [answer, "204 No Content"]
    with pytest.raises(ApplicationError, match=said) as error:
        await loader.imported()
    assert error.value.type == type
    assert (await loader.imported()).counts == Counts(created=2, rejected=1)


async def test_nothing_is_told_of_a_document_that_is_held_back(loader: Loader) -> None:
    await loader.declare("csv")
    done = await loader.imported(all_or_nothing=True)
    assert done.held_back is not None
    assert loader.receiver.requests == []


async def test_a_dry_run_writes_no_file_and_tells_nobody(loader: Loader) -> None:
    await loader.declare("csv")
    file = loader.installation.ports.folder / "readings.csv"
    file.write_bytes(CONTENT)
    given = message_of("readings", blob_name="in/readings")
    async with rehearsed(loader.installation.database, given, file) as found:
        assert found.outcome.counts == Counts(created=2, rejected=1), found.parks
    assert loader.receiver.requests == []


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("{file: xml}", "target.file"),
        ("{file: csv, table: a.b}", "either 'table' or 'file'"),
        ("{webhook: loader}", "either 'table' or 'file'"),
        ("{table: a.b, webhook: loader}", "webhook: belongs to 'file'"),
    ],
)
def test_a_target_that_cannot_be_is_refused(target: str, said: str) -> None:
    text = READINGS.replace("{file: FORMAT, webhook: loader}", target)
    with pytest.raises(RuleViolation, match=said):
        read_type(text.replace("unmapped: keep\n", ""), "readings.yaml")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("DOCFLOW_TYPE_DATABASES", '{"erp": "mysql://h/d"}', "erp"),
        ("DOCFLOW_TYPE_DATABASES", "erp", "must be JSON"),
        (
            "DOCFLOW_TYPE_WEBHOOKS",
            '{"erp": {"url": "ftp://h", "secret": "s"}}',
            "is not a URL",
        ),
        ("DOCFLOW_TYPE_WEBHOOKS", '{"erp": {"url": "https://h", "secret": ""}}', "one secret"),
        ("DOCFLOW_TYPE_WEBHOOKS", '{"erp": "https://h"}', "must be JSON"),
    ],
)
def test_wrong_settings_of_targets_say_what_is_wrong(name: str, value: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        TargetSettings.read({name: value})
