"""The Python client, synchronous and asynchronous, against a gateway with a worker."""

import asyncio
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
import pytest_asyncio

from docflow.client import AsyncClient, Client, GatewayUnreachable, Problem, SentFile, TooLate
from stack.children import free_port
from tests.gateway.test_commands import Terminal
from tests.gateway.test_documents import OPERATOR, ROWS, parked
from tests.support.cli import run_docflow_in_thread
from tests.support.gateway import Stack, import_in, served, token
from workers.imports.register import IMPORTS
from workers.imports.resources import import_resources
from workers.imports.settings import RunSettings
from workers.shared.cli.context import CliContext
from workers.shared.worker_factory import build_worker

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
PROGRAMS = re.findall(r"```python run\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
Event = TypeVar("Event")
MESSAGE = {"document_type": "equipment", "project_id": "P3"}


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def address(stack: Stack) -> AsyncIterator[str]:
    """A gateway that listens, with a worker for imports."""
    own = import_resources(stack.resources.database, stack.client, RunSettings.read({}))
    gateway = stack.gateway(allowed_hosts=("127.0.0.1",))
    async with (
        build_worker(stack.client, IMPORTS, stack.resources, own),
        served(gateway) as address,
    ):
        yield address


async def test_a_document_is_sent_followed_and_answered(stack: Stack, address: str) -> None:
    async with AsyncClient(address, OPERATOR) as docflow:
        key = uuid.uuid4().hex
        file = Path(stack.resources.scratch) / "Kräne.csv"
        file.write_bytes(ROWS)
        seen: list[tuple[int, int]] = []
        with file.open("rb") as opened:
            sent = SentFile(opened, file.name, progress=lambda *done: seen.append(done))
            made = await docflow.submit_document(message=MESSAGE, file=sent, idempotency_key=key)
        again = await docflow.submit_document(message=MESSAGE, file=file, idempotency_key=key)
        assert (made.is_new, again) == (True, made.model_copy(update={"is_new": False}))
        assert seen[-1] == (len(ROWS), len(ROWS))
        done = await docflow.wait(made.id)
        assert (done.state, done.title, done.counts["created"]) == ("completed", "Kräne.csv", 2)
        steps = (await docflow.get_run_timeline(made.id)).items
        assert steps and steps[0].at <= done.changed_at
        with pytest.raises(Problem) as refused:
            await docflow.answer_run(made.id, "retry")
        assert (refused.value.status, refused.value.code) == (409, "wrong-state")
        assert "has ended" in str(refused.value)


async def test_a_watched_run_or_upload_is_followed_to_its_end(stack: Stack, address: str) -> None:
    id = await parked(stack, project_id="P5")
    async with asyncio.timeout(60), AsyncClient(address, OPERATOR) as docflow:
        following = asyncio.ensure_future(_all(docflow.watch_run(id)))
        await docflow.answer_run(id, "skip", reason="a test")
        assert (await following)[-1].state == "skipped"
        assert [each.state for each in await _all(docflow.watch_run(id))] == ["skipped"]
    async with asyncio.timeout(60), AsyncClient(address, token("anna")) as docflow:
        async with stack.browser(token("anna")) as anna:
            uuid = await import_in(anna, "COMPLETED", autoStart="true")
        assert [each.state for each in await _all(docflow.watch_upload(uuid))] == ["COMPLETED"]


async def test_an_answer_keeps_its_reason_and_answers_only_what_was_seen(
    stack: Stack, address: str
) -> None:
    id = await parked(stack, project_id="P9")
    short, why = id.removeprefix("import/"), "the file is there now"
    async with AsyncClient(address, token("alma", 1, "admin")) as docflow:
        seen = (await docflow.get_run(short)).http_etag
        done = await docflow.answer_run(short, "retry", reason=why, if_match=seen)
        assert done.http_etag != seen
        with pytest.raises(Problem) as late:
            await docflow.answer_run(short, "skip", if_match=seen)
        assert (late.value.status, late.value.code) == (412, "version-conflict")
        told = (await docflow.get_run_timeline(id)).items
        assert [each.reason for each in told if each.event == "answer"] == [why]
        dropped = f"import/{uuid.uuid4().hex}/none"
        chosen = {"ids": [id, dropped]}
        many = await docflow.answer_runs(answer="skip", runs=chosen, reason="a test", dry_run=False)
        assert (many.found, many.left_out, many.failed) == ([id], [dropped], {})
        noted = (await docflow.list_audit(object=id)).items
        assert [(each.action, each.reason, each.status) for each in noted] == [
            ("answerRuns", "a test", 200),
            ("answerRun", None, 412),
            ("answerRun", why, 200),
        ]
        assert {each.before["own_state"] for each in noted} == {"parked"}


async def _all(events: AsyncIterator[Event]) -> Sequence[Event]:
    return [each async for each in events]


async def test_lists_are_read_to_their_end_by_both(stack: Stack, address: str) -> None:
    ids = {await parked(stack, project_id="P4") for _ in range(3)}
    with Client(address, OPERATOR) as docflow:

        def listed() -> set[str]:
            filters = {"project": "P4", "needs_attention": True, "limit": 2}
            return {run.id for run in docflow.pages(docflow.list_runs, **filters)}

        assert await asyncio.to_thread(listed) == ids
        for id in ids:
            gone = await asyncio.to_thread(docflow.answer_run, id, "fail", reason="a test")
            assert gone.id == id


async def test_a_run_that_goes_on_is_not_waited_for_longer_than_asked(
    stack: Stack, address: str
) -> None:
    id = f"import/P1/{uuid.uuid4().hex}"
    await stack.client.start_workflow(
        "DocumentImport", id=id, task_queue="nobody-works-here", memo={"pipeline": "imports"}
    )
    with Client(address, OPERATOR) as docflow, pytest.raises(TooLate, match="is running after"):
        await asyncio.to_thread(docflow.wait, id, 0.2)
    await stack.client.get_workflow_handle(id).terminate()


async def test_a_file_is_written_once_it_is_complete(
    stack: Stack, address: str, tmp_path: Path
) -> None:
    target = tmp_path / "template.xlsx"
    async with AsyncClient(address, OPERATOR) as docflow:
        made = await docflow.submit_document(
            message=MESSAGE | {"task_id": uuid.uuid4().hex}, file=_bad(tmp_path)
        )
        done = await docflow.wait(made.id)
        assert done.has_report, done
        [problem] = (await docflow.get_document(made.id)).problems
        assert (problem.line, problem.column, problem.reason) == (4, "Code", "is missing")
        assert await docflow.get_run_report(made.id, target) == target
        with pytest.raises(Problem):
            await docflow.get_run_report("import/P1/none", tmp_path / "none.xlsx")
    assert target.read_bytes().startswith(b"PK")
    assert {path.name for path in tmp_path.iterdir()} == {"bad.csv", "template.xlsx"}


def _bad(folder: Path) -> Path:
    file = folder / "bad.csv"
    file.write_bytes(ROWS + b",Winch,5\n")
    return file


async def test_who_may_not_and_who_is_not_there_are_told_apart(address: str) -> None:
    async with AsyncClient(address, token("vera", 1, "viewer")) as docflow:
        with pytest.raises(Problem) as refused:
            await docflow.list_partners()
        assert refused.value.status == 403
    async with AsyncClient(address, token("alma", 1, "admin")) as docflow:
        made = await docflow.make_token(name="p", organisation_id=1, roles=["operator"])
    async with AsyncClient(address, made.token) as docflow:
        with pytest.raises(Problem, match="belongs to the whole installation"):
            await docflow.list_partners()
    async with AsyncClient(address, "nonsense") as docflow:
        with pytest.raises(Problem) as unknown:
            await docflow.list_runs()
        assert unknown.value.status == 401
    nobody = Client(f"http://127.0.0.1:{free_port()}", "x")
    with nobody, pytest.raises(GatewayUnreachable, match="does not answer"):
        await asyncio.to_thread(nobody.list_runs)


async def test_commands_wait_for_runs_and_watch_them(stack: Stack, address: str) -> None:
    olga = Terminal(address, OPERATOR)
    id = await parked(stack, project_id="P6")
    waiting = await run_docflow_in_thread("run", "wait", id, context=CliContext(olga.environment))
    assert waiting.exit_code == 4
    assert "retry | skip | fail" in waiting.stdout, waiting.stdout
    watching = asyncio.ensure_future(olga.says("run", "watch", id, "-o", "json"))
    async with stack.browser(OPERATOR) as browser:
        await browser.post(f"/api/v1/runs/{id}/skip", json={"reason": "a test"})
    changes = [json.loads(line) for line in (await watching).splitlines()]
    assert {each["id"] for each in changes} == {id}
    assert changes[-1]["state"] == "skipped"
    assert (await olga.json("run", "wait", id))["state"] == "skipped"
    assert "skipped" in await olga.says("run", "watch", id)
    assert id in await olga.says("run", "watch", id, "-o", "name")
    assert "there is no run" in await olga.says("run", "wait", "batch/9/9", code=1)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
async def test_a_program_of_the_docs_runs(address: str, tmp_path: Path, number: int) -> None:
    environment = {**os.environ, "DOCFLOW_ADDRESS": address, "DOCFLOW_TOKEN": OPERATOR}
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-W", "error", "-c", PROGRAMS[number]],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "completed" in done.stdout or number == 2
