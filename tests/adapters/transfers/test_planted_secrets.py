"""Secrets of partners appear nowhere: in no history, log, receipt, note or error text."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DefaultFailureConverter, DefaultPayloadConverter
from temporalio.exceptions import ApplicationError

from activities.transfers.read_file import FileReading
from activities.transfers.write_file import FileWriting, HttpCalling
from tests.adapters.transfers.conftest import Kind, endpoint
from tests.support.imports.activities import environment
from tests.support.transfers.actions import Endpoints
from tests.support.transfers.sftp_server import sftp_site
from workflows.transfers.settings import CallHttp, Overwrite, ReadFile, WriteFile

pytestmark = pytest.mark.parametrize("kind", ["sftp", "azure", "s3", "https"], indirect=True)


class Seen:
    """Everything that leaves an activity, as text."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def run(self, activity: Any, order: Any) -> None:
        """Run an activity, and keep its result, heartbeats or failure as a history holds them."""
        runner = environment()
        runner.on_heartbeat = lambda *details: self.texts.append(repr(details))
        try:
            result = await runner.run(activity, order)
        except ApplicationError as error:
            failure = Failure()
            DefaultFailureConverter().to_failure(error, DefaultPayloadConverter(), failure)
            self.texts += [str(failure), repr(error), repr(error.__cause__)]
        else:
            self.texts.append(result.model_dump_json())

    def assert_without(self, planted: Mapping[str, str], *more: str) -> None:
        """See that none of the secrets is anywhere, in whole or as a line of it."""
        everything = "\n".join((*self.texts, *more))
        assert everything
        for name, secret in planted.items():
            parts = [part for part in secret.replace(";", "\n").split("\n") if len(part) > 7]
            for part in parts:
                value = part.partition("=")[2] if "Key=" in part else part
                is_public = part.startswith(("DefaultEndpoints", "AccountName", "BlobEndpoint"))
                assert is_public or value not in everything, name


async def test_secrets_of_partners_appear_nowhere(
    kind: Kind, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    seen = Seen()
    async with endpoint(kind, tmp_path) as far:
        secrets = dict(far.places.secrets.environment)  # type: ignore[attr-defined]
        partner = far.partner
        if kind.name == "https":
            secrets["TOKEN"] = "planted-bearer-token-4411"
            partner = partner.model_copy(update={"token": "env:TOKEN"})
        wrong = {name: f"planted-wrong-{value[-12:]}" for name, value in secrets.items()}
        for given in (secrets, wrong):
            ends = Endpoints.at(tmp_path, partner, secrets=given)
            await _used(ends, seen, kind)
            stored = b"".join(
                [
                    piece
                    for ref in await ends.blobs.list("", 1_000)
                    async for piece in ends.blobs.read(ref.name)
                ]
            ).decode("latin-1")
            records = repr(await ends.partners.all()) + repr(ends.places)
            seen.assert_without(given, stored, records, caplog.text)


async def test_secrets_of_partners_that_cannot_be_reached_appear_nowhere(
    kind: Kind, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    seen = Seen()
    async with endpoint(kind, tmp_path) as far:
        partner, secrets = far.partner, dict(far.places.secrets.environment)  # type: ignore[attr-defined]
    host = "http://127.0.0.1:9" if kind.name != "sftp" else "127.0.0.1"
    gone = partner.model_copy(update={"host": host, "port": None if kind.name != "sftp" else 9})
    ends = Endpoints.at(tmp_path, gone, secrets=secrets)
    await _used(ends, seen, kind)
    seen.assert_without(secrets, caplog.text)


async def _used(ends: Endpoints, seen: Seen, kind: Kind) -> None:
    """Write, read, miss, be refused, and call."""
    put = WriteFile(partner="acme", path="{name}", overwrite=Overwrite.REFUSE)
    order = ends.order(put, {"path": "{name}"})
    for content in (b"one", b"another"):
        files = await ends.staged(order, **{"a.csv": content})
        filled = order.model_copy(update={"files": files})
        await seen.run(FileWriting(ends.ports).write_file, filled)
    for path in ("a.csv", "none.csv", "../a.csv"):
        get = ends.order(ReadFile(partner="acme", path=path), {"path": path})
        await seen.run(FileReading(ends.ports).read_file, get)
    call = ends.order(CallHttp(partner="acme", succeeds=(299,)), {"path": "/hook?sig=x"})
    await seen.run(HttpCalling(ends.ports).call_http, call)


async def test_a_private_key_appears_nowhere(kind: Kind, tmp_path: Path) -> None:
    if kind.name != "sftp":
        return
    seen = Seen()
    async with sftp_site(tmp_path / "served") as site:
        key = asyncssh.generate_private_key("ssh-ed25519")
        text = key.export_private_key("pkcs8-pem", "planted-passphrase").decode()
        fields = {"password": None, "private_key": "env:KEY", "passphrase": "env:PHRASE"}
        for phrase in ("planted-passphrase", "planted-other"):
            secrets = {"KEY": text, "PHRASE": phrase}
            ends = Endpoints.at(tmp_path, site.partner(**fields), secrets=secrets)
            await _used(ends, seen, kind)
            seen.assert_without(secrets)
