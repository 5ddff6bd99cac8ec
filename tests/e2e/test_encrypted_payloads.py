"""With keys of payloads, values that people sent are found nowhere but in docflow's own stores."""

import asyncio
import base64
import json
import os
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload, SearchAttributes
from temporalio.client import Client

from stack.children import free_port
from stack.embedded import DOCFLOW
from stack.temporal import temporal_binary, temporal_server
from tests.crash.harness import Part
from tests.support.fresh_database import fresh_url
from tests.support.waiting import eventually
from workers.shared.connect import connect
from workers.shared.gateway.http.auth import mint_token
from workers.shared.payload_codec import is_encrypted
from workers.shared.schedules import Change, declared_schedules, reconcile
from workers.shared.settings.gateway import TokenSettings
from workflows.shared.errands import ERRAND, ErrandInput, ErrandResult

PLANTED: Mapping[str, str] = {
    "cell": "planted-cell-4711",
    "password": "planted-password-4712",
    "token": "planted-token-4713",
    "webhook secret": "whsec_cGxhbnRlZC1zZWNyZXQtNDcxNA",
    "file": "planted-file-4715",
}
NAMED_IN_LOGS: Mapping[str, set[str]] = {"logs": {"file"}}
"""A worker logs which document is missing."""
_JWT_KEY = "a key of the payload tests that is long enough"
_KEY = base64.b64encode(b"k" * 32).decode()


@dataclass(frozen=True)
class Site:
    """Temporal with its database on disk, a worker and a gateway with metrics."""

    folder: Path
    settings: Mapping[str, str]
    client: Client
    gateway: httpx.AsyncClient
    metrics: Sequence[str]

    async def errand(self, kind: str, **arguments: Any) -> ErrandResult:
        """Ask a worker for something."""
        return await self.client.execute_workflow(
            ERRAND,
            ErrandInput(kind=kind, arguments=arguments, by="ann"),
            id=f"errand/{kind}/{len(arguments)}",
            task_queue="imports",
            result_type=ErrandResult,
        )

    async def state(self, run: str) -> str:
        return (await self.gateway.get(f"/api/v1/runs/{run}")).json()["own_state"]

    async def started(self, task: str, blob: str) -> str:
        """Start the import of a table; its run."""
        message = {"document_type": "equipment", "task_id": task, "project_id": "P1"}
        done = await self.errand("start", **message, blob_name=blob)
        assert done.refused is None, done.problem
        return json.loads(done.answer)["id"]


@asynccontextmanager
async def running_site(folder: Path, settings: Mapping[str, str]) -> AsyncGenerator[Site]:
    """Start everything; it ends with the block.

    Args:
        folder: For all that is kept.
        settings: Further settings of worker, gateway and client.
    """
    (folder / "docflow").mkdir()
    async with AsyncExitStack() as stack:
        temporal = await stack.enter_async_context(temporal_server(folder / "temporal", ui=False))
        pointers = {
            "TEMPORAL_ADDRESS": temporal.address,
            "DATABASE_URL": fresh_url(),
            "DOCFLOW_BLOB_FOLDER": str(folder / "docflow" / "blobs"),
            "DOCFLOW_SCRATCH": str(folder / "docflow" / "scratch"),
            "DOCFLOW_JWT_KEY": _JWT_KEY,
            **settings,
        }
        ports = [free_port() for _ in range(4)]
        environment = {**os.environ, **pointers}
        working = ("worker", "imports", "--health-port", str(ports[0]))
        serving = ("gateway", "--port", str(ports[1]))
        for (name, *more), port, metrics in zip(
            (working, serving), ports[:2], ports[2:], strict=True
        ):
            command = [*DOCFLOW, name, *more, "--metrics-port", str(metrics)]
            log = folder / f"{name}.log"
            part = Part(name, command, log, environment, port, has_health=True)
            stack.push_async_callback(part.stop)
            await part.start()
        token = mint_token(
            TokenSettings(key=_JWT_KEY), subject="ann", organisations=[], roles=["operator"]
        )
        yield Site(
            folder,
            pointers,
            await connect(environment=pointers),
            await stack.enter_async_context(
                httpx.AsyncClient(
                    base_url=f"http://127.0.0.1:{ports[1]}",
                    headers={"authorization": f"Bearer {token}"},
                    timeout=60,
                )
            ),
            [f"http://127.0.0.1:{port}/metrics" for port in ports[2:]],
        )


async def _documents(site: Site) -> Sequence[str]:
    """Import a table with a wrong cell, and one that is missing; their runs."""
    uploads = site.folder / "docflow" / "blobs" / "imports" / "uploads"
    uploads.mkdir(parents=True, exist_ok=True)
    table = f"Code,Name,Rate\nE-1,Crane,{PLANTED['cell']}\nE-2,Truck,12\n"
    (uploads / "equipment.csv").write_text(table)
    imported = await site.started("wrong-cell", "uploads/equipment.csv")
    parked = await site.started("no-file", f"uploads/{PLANTED['file']}.csv")

    async def stand() -> bool:
        return (await site.state(imported), await site.state(parked)) == ("completed", "parked")

    await eventually(stand)
    return imported, parked


async def _secrets(site: Site) -> None:
    """Give a worker secrets in an errand that it does not do."""
    refused = await site.errand(
        "add-partner",
        partner={"name": "acme", "password": PLANTED["password"]},
        token=PLANTED["token"],
        webhook={"secret": PLANTED["webhook secret"]},
    )
    assert refused.problem == "workers of imports do no add-partner"


def _found(texts: Mapping[str, bytes]) -> Mapping[str, set[str]]:
    """Which values are in each text, as they are or in base64."""
    found: dict[str, set[str]] = {}
    for place, text in texts.items():
        for name, value in PLANTED.items():
            shifted = {base64.b64encode(b" " * n + value.encode())[4:-4] for n in range(3)}
            if any(each in text for each in (value.encode(), *shifted)):
                found.setdefault(place, set()).add(name)
    return found


async def _places(site: Site, errors: Sequence[httpx.Response]) -> Mapping[str, bytes]:
    async with httpx.AsyncClient() as browser:
        metrics = [(await browser.get(each)).content for each in site.metrics]
    store = [path for path in (site.folder / "temporal").iterdir() if path.is_file()]
    assert any(path.read_bytes().startswith(b"SQLite format 3") for path in store)
    assert all(b"docflow_" in each or b"temporal_" in each for each in metrics)
    return {
        "Temporal": b"".join(path.read_bytes() for path in store),
        "logs": b"".join(path.read_bytes() for path in site.folder.glob("*.log")),
        "metrics": b"".join(metrics),
        "error pages": b"".join(each.content for each in errors),
    }


async def _errors(site: Site) -> Sequence[httpx.Response]:
    """Answers to requests that hold the values, and are refused."""
    secret, page = PLANTED["token"], {"accept": "text/html"}
    ask = site.gateway
    answers = [
        await ask.get("/api/v1/runs", headers={"authorization": f"Bearer {secret}"}),
        await ask.get("/runs", headers={**page, "authorization": f"Bearer {secret}"}),
        await ask.post("/sign-in", headers=page, data={"token": secret}),
        await ask.post("/codec/decode", json={"payloads": secret}),
        await ask.post("/api/v1/documents", json={"document_type": 1, "x": list(PLANTED.values())}),
        await ask.post("/api/v1/webhooks", json={"url": 1, "secret": PLANTED["webhook secret"]}),
        await ask.get("/nowhere", headers=page),
    ]
    assert [each.url for each in answers if each.is_success] == []
    return answers


@pytest.mark.parametrize("encrypted", [True, False], ids=["with keys", "without"])
async def test_planted_values_are_found_without_keys_alone(tmp_path: Path, encrypted: bool) -> None:
    keys = {"DOCFLOW_PAYLOAD_KEYS": "one=env:PLANTED_KEY", "PLANTED_KEY": _KEY}
    async with running_site(tmp_path, keys if encrypted else {}) as site:
        imported, parked = await _documents(site)
        await _secrets(site)
        places = await _places(site, await _errors(site))
        said = "encrypted in Temporal with the key one" if encrypted else "stand in clear"
        for name in ("worker", "gateway"):
            assert (tmp_path / f"{name}.log").read_text().count(said) == 1
        clear = {} if encrypted else {"Temporal": set(PLANTED)}
        assert _found(places) == {**clear, **NAMED_IN_LOGS}
        assert _KEY.encode() not in b"".join(places.values())

        timeline = (await site.gateway.get(f"/api/v1/runs/{parked}/timeline")).json()["items"]
        assert any(PLANTED["file"] in (each["problem"] or "") for each in timeline), timeline
        assert "waits for a person" in {each["text"] for each in timeline}
        problems = await site.client.get_workflow_handle(imported).query("status")
        assert PLANTED["cell"] in json.dumps(problems)


def _payloads(message: Message, path: str = "") -> Iterator[tuple[str, Payload]]:
    """All payloads of a message but search attributes, with where they are."""
    if isinstance(message, Payload):
        yield path, message
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        many = value.values() if hasattr(value, "values") else value
        for each in [value] if isinstance(value, Message) else many:
            if isinstance(each, Message) and not isinstance(each, SearchAttributes):
                yield from _payloads(each, f"{path}.{field.name}")


async def test_every_payload_of_a_run_is_encrypted(tmp_path: Path) -> None:
    keys = {"DOCFLOW_PAYLOAD_KEYS": "one=env:PLANTED_KEY", "PLANTED_KEY": _KEY}
    async with running_site(tmp_path, keys) as site:
        found: list[tuple[str, Payload]] = []
        for run in await _documents(site):
            handle = site.client.get_workflow_handle(run)
            found += _payloads((await handle.describe()).raw_description)
            for event in (await handle.fetch_history()).events:
                found += _payloads(event)
        names = {path.rpartition(".")[2] for path, _ in found}
        assert {"fields", "payloads", "summary", "encoded_attributes", "details"} <= names
        clear = {path for path, payload in found if not is_encrypted(payload)}
        # The SDK's own note of a local activity: its type, attempts and times.
        assert clear == {".marker_recorded_event_attributes.details.payloads"}
        table = declared_schedules(["imports"], site.settings)
        done = await reconcile(site.client, ["imports"], table)
        assert set(done.values()) == {Change.NONE}


async def _temporal(site: Site, *arguments: str) -> str:
    running = await asyncio.create_subprocess_exec(
        *(
            temporal_binary(),
            "workflow",
            *arguments,
            "--address",
            site.settings["TEMPORAL_ADDRESS"],
        ),
        stdout=PIPE,
        stderr=PIPE,
    )
    output, errors = await running.communicate()
    return (output + errors).decode()


async def test_the_temporal_cli_reads_and_answers_with_the_codec_server(tmp_path: Path) -> None:
    keys = {"DOCFLOW_PAYLOAD_KEYS": "one=env:PLANTED_KEY", "PLANTED_KEY": _KEY}
    async with running_site(tmp_path, keys) as site:
        _, parked = await _documents(site)
        server = ("--codec-endpoint", f"{site.gateway.base_url}/codec")
        auth = ("--codec-auth", site.gateway.headers["authorization"])
        shown = ("show", "--workflow-id", parked, "--output", "json")
        codec = {"no codec": (), "no token": server, "operator": (*server, *auth)}
        texts = {each: (await _temporal(site, *shown, *codec[each])).encode() for each in codec}
        assert _found(texts) == {"operator": {"file"}}
        answer = ("update", "execute", "--workflow-id", parked, "--name", "skip")
        given = ("--input", json.dumps({"by": "ann", "reason": PLANTED["token"]}))
        await _temporal(site, *answer, *given, *server, *auth)

        async def skipped() -> bool:
            return await site.state(parked) == "skipped"

        await eventually(skipped)
        assert _found(await _places(site, ())) == NAMED_IN_LOGS
        entries = await site.client.get_workflow_handle(parked).fetch_history()
        assert PLANTED["token"] not in entries.to_json()
