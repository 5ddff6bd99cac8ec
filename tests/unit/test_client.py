"""How the client tries again, and continues a stream, against a server that answers as told."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from docflow.client import (
    AsyncClient,
    Client,
    Context,
    Contexts,
    GatewayUnreachable,
    NotConfigured,
    Problem,
)
from docflow.client.operations import Operations
from tests.client_code import files

RUN = {
    "id": "import/P1/T1",
    "pipeline": "imports",
    "kind": "mto",
    "key": "P1/T1",
    "short": "T1",
    "state": "running",
    "own_state": "running",
    "counts": {},
    "links": {},
    "answers_at": "import/P1/T1",
    "created_at": "2026-01-03T10:00:00Z",
    "changed_at": "2026-01-03T10:00:00Z",
}
AWAY = "503 Service Unavailable\r\nRetry-After: 0"


def ok(body: object) -> str:
    text = json.dumps(body)
    return f"200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}"


def event(number: int) -> str:
    return f"event: run\nid: {number}\ndata: {json.dumps(RUN)}\n\n"


STREAM = "200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


@dataclass
class Scripted:
    """Answers requests in turn, and closes each connection behind its answer."""

    answers: list[str]
    requests: list[str] = field(default_factory=list[str])
    address: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
        answer = self.answers.pop(0)
        end = "" if "\r\n\r\n" in answer else "\r\nContent-Length: 0\r\n\r\n"
        writer.write(f"HTTP/1.1 {answer}{end}".encode())
        await writer.drain()
        writer.close()

    def headers(self, name: str) -> Sequence[str | None]:
        """A header of each request."""
        found = [
            [
                line.partition(": ")[2]
                for line in each.split("\r\n")
                if line.lower().startswith(name)
            ]
            for each in self.requests
        ]
        return [each[0] if each else None for each in found]


@asynccontextmanager
async def scripted(*answers: str) -> AsyncGenerator[tuple[Scripted, AsyncClient]]:
    """A server and a client of it."""
    script = Scripted(list(answers))
    server = await asyncio.start_server(script.serve, "127.0.0.1")
    script.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, AsyncClient(script.address, "t") as client:
        yield script, client


async def test_a_read_is_tried_again_until_the_gateway_is_back() -> None:
    async with scripted(AWAY, AWAY, ok({"items": [RUN], "next": None})) as (script, client):
        (run,) = (await client.list_runs(state="running")).items
    assert (run.id, len(script.requests)) == ("import/P1/T1", 3)
    assert script.requests[0].startswith("GET /api/v1/runs?state=running HTTP")


async def test_a_change_is_repeated_only_if_it_was_not_carried_out_or_has_a_key() -> None:
    busy = "429 Too Many Requests\r\nRetry-After: 0"
    problem = {"type": "unavailable", "title": "Away", "detail": "Temporal does not answer"}
    away = ok(problem).replace("200 OK", "503 Service Unavailable\r\nRetry-After: 0")
    async with scripted(busy, away) as (script, client):
        with pytest.raises(Problem, match="Temporal does not answer") as refused:
            await client.answer_run("import/P1/T1", "retry")
        assert (refused.value.status, len(script.requests)) == (503, 2)
    async with scripted(AWAY, ok({"id": "import/P1/T1", "is_new": True})) as (script, client):
        await client.submit_document(message={})
        first, second = script.headers("idempotency-key")
    assert first and first == second


async def test_a_stream_that_breaks_is_continued_behind_its_last_event() -> None:
    cut = event(5)[:40]
    parts = (STREAM + event(3) + event(4), STREAM + cut, STREAM + event(5), STREAM + event(6))
    async with (
        scripted(*parts) as (script, client),
        aclosing(client.watch_run("import/P1/T1")) as changes,
    ):
        seen = [await anext(changes) for _ in range(4)]
    assert {run.id for run in seen} == {RUN["id"]}
    assert script.headers("last-event-id") == [None, "4", "4", "5"]


async def test_what_is_no_gateway_is_not_taken_for_one() -> None:
    page = "200 OK\r\nContent-Length: 2\r\n\r\nhi"
    for answer, says in ((page, "answered something else"), ("404 Not Found", "is no gateway")):
        async with scripted(answer) as (_, client):
            with pytest.raises(GatewayUnreachable, match=says):
                await client.get_run("import/P1/T1")


async def test_the_synchronous_client_does_the_same() -> None:
    async with scripted(AWAY, ok({**RUN, "answers": [], "has_report": False, "details": {}})) as (
        script,
        _,
    ):
        with Client(script.address, "t") as client:
            run = await asyncio.to_thread(client.get_run, "import/P1/T 1")
    assert (run.answers, run.title) == ([], None)
    assert script.requests[-1].startswith("GET /api/v1/runs/import/P1/T%201 HTTP")


def test_parts_of_a_form_have_names_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "tools.csv"
    file.write_text("no\n7\n")
    request = Operations.create_upload(import_type="tools", file=file, scope={"project_id": "P1"})
    with request.opened(None) as made:
        assert made["data"] == {"import_type": "tools", "scope.project_id": "P1"}


def test_the_generated_part_is_that_of_the_committed_document() -> None:
    stale = [
        path.name for path, text in files().items() if path.read_text(encoding="utf-8") != text
    ]
    assert not stale, f"python -m tests.client_code writes {stale}"


def test_contexts_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    contexts = Contexts({"XDG_CONFIG_HOME": str(tmp_path)})
    with pytest.raises(NotConfigured, match="docflow login ADDRESS"):
        contexts.chosen()
    contexts.keep("test", Context("http://test", "secret"))
    contexts.keep("live", Context("http://live", "other"))
    assert contexts.path.stat().st_mode & 0o077 == 0
    assert contexts.chosen().address == "http://live"
    contexts.use("test")
    assert (contexts.current, contexts.chosen().token) == ("test", "secret")
    assert "secret" not in repr(contexts.chosen())
    by_name = Contexts({**contexts.environment, "DOCFLOW_CONTEXT": "live"})
    assert by_name.chosen().address == "http://live"
    contexts.remove("test")
    with pytest.raises(NotConfigured, match="no gateway is known"):
        contexts.chosen()
    with pytest.raises(NotConfigured, match="there is no context test; there are: live"):
        contexts.use("test")
    given = Contexts({"DOCFLOW_ADDRESS": "http://e", "DOCFLOW_TOKEN": "t"})
    assert given.chosen() == Context("http://e", "t")
    with pytest.raises(NotConfigured, match="together"):
        Contexts({"DOCFLOW_ADDRESS": "http://e"}).chosen()
    for address in ("example.org", "http://e:port", "ftp://e"):
        with pytest.raises(NotConfigured, match="is no address"):
            Client(address, "t")
    for token in ("secret\nsecret", "sécret"):
        with pytest.raises(NotConfigured, match=r"the token .* holds characters") as refused:
            Client("http://e", token)
        assert token not in str(refused.value)
    contexts.path.write_text("{")
    with pytest.raises(NotConfigured, match="is damaged"):
        contexts.all()


def test_contexts_that_two_processes_keep_at_once_are_whole(tmp_path: Path) -> None:
    contexts = Contexts({"DOCFLOW_CONTEXTS": str(tmp_path / "contexts.json")})

    def keep(name: str) -> None:
        for number in range(50):
            contexts.keep(name, Context(f"http://{name}/{number}", "t"))
            assert contexts.current

    threads = [threading.Thread(target=keep, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert contexts.current in contexts.all()
    assert all(first < second for first, second in pairwise(sorted(contexts.all())))
