"""`docflow job` at a gateway with workers of jobs."""

import hashlib
import json
from asyncio import to_thread as in_thread
from pathlib import Path

import pytest

from docflow.client import Client, Problem
from tests.gateway.test_commands import OPERATOR, Terminal
from tests.support.jobs.gateway import JobStack
from tests.support.jobs.receivers import receiver, with_status
from tests.support.waiting import eventually
from workflows.jobs.runs import JobRetentionResult

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECRET = "planted-secret-of-a-client"


async def test_a_job_is_submitted_followed_and_shown(olga: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "heights.txt"
    file.write_text("1 2 3")
    asked = ("job", "submit", "survey", str(file), "--param", "bad=1")
    said = await olga.says(*asked)
    assert "stage 1 (measure): completed" in said and "COMPLETED" in said
    assert "note: heights in <feet> were left out" in said and "holds no data" in said
    again = await olga.json(*asked, "--no-follow")
    assert not again["created"]
    job = again["job_id"]
    assert f"asked for before: job {job}" in await olga.says(*asked, "--no-follow")
    shown = await olga.json("job", "show", job[:12])
    assert (shown["status"], shown["failed_count"]) == ("COMPLETED", 1)
    digest = hashlib.sha256(b"1 2 3").hexdigest()
    assert shown["parameters"]["files"] == f"uploads/{digest}/heights.txt"
    assert job in (await olga.says("job", "list", "--type", "survey", "-o", "name")).split()
    assert "COMPLETED" in await olga.says("job", "show", job[:12], "--watch")
    await olga.says("job", "submit", "hello_world", "--param", "message=another")
    ours = ("job", "submit", "hello_world", "--organisation", "1", "--no-follow")
    job_of_ours = (await olga.json(*ours))["job_id"]
    assert (await olga.json("job", "show", job_of_ours))["organisation_id"] == 1
    theirs = ("job", "submit", "hello_world", "--organisation", "2")
    assert "your roles in organisation 2 do not allow this" in await olga.says(*theirs, code=1)
    newest = await olga.says("job", "list", "--limit", "1")
    assert "the newest 1; --limit shows more" in newest and "hello_world" in newest
    assert len(await olga.json("job", "list", "--limit", "2")) == 2
    assert await olga.says("job", "list", "--type", "other") == (
        "no such jobs; `docflow job submit --help` starts one\n"
    )
    failed = await olga.says("job", "show", job, "tasks", "--state", "FAILED")
    assert "tile-x0" in failed and "tile-x1" not in failed


async def test_job_types_are_listed_with_their_parameters(olga: Terminal) -> None:
    said = await olga.says("job", "types")
    assert "measure, publish" in said and "files, bad, ask, taken, broken, late" in said
    hello, survey = await olga.json("job", "types", "-o", "json")
    assert (hello["job_type"], survey["file_parameter"]) == ("hello_world", "files")
    assert survey["parameters"]["properties"]["bad"]["type"] == "integer"


async def test_webhooks_are_listed_and_sent_again(olga: Terminal) -> None:
    async with receiver(with_status("200 OK")) as site:
        url = f"http://127.0.0.1:{site.port}/done"
        given = ("--param", f"webhook_url={url}", "--param", f"webhook_secret={SECRET}")
        asked = ("job", "submit", "hello_world", "--param", "message=cli", *given)
        done = await olga.says(*asked, "-o", "name")
        job = done.splitlines()[-1]

        async def reported(times: int) -> bool:
            return len(site.requests) == times

        await eventually(lambda: reported(1))

        async def logged() -> bool:
            return "delivered" in await olga.says("job", "webhooks", job)

        await eventually(logged)
        log = await olga.says("job", "webhooks", job)
        assert "1 of 4" in log
        again = await olga.says("job", "webhooks", job[:12], "--retry", "0")
        assert f"sending to {url} again" in again
        await eventually(lambda: reported(2))
    for output in (done, log, again):
        assert SECRET not in output


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (("submit", "hello_world", "--param", "n"), 2, "write NAME=VALUE"),
        (("submit", "hello_world", "--param", "n=1", "--param", "n=2"), 2, "given twice"),
        (("submit", "Hello!"), 2, "job_type"),
        (("submit", "other"), 2, "'other' is not installed"),
        (("submit", "hello_world", "--param", "n=-1"), 2, "parameters.n"),
        (("submit", "hello_world", __file__), 2, "hello_world takes no file"),
        (("submit", "survey", __file__, "--param", 'files=["a"]'), 2, "files or a file, not both"),
        (("show", "nothing"), 1, "there is no job 'nothing'"),
        (("show", "nothing", "--watch"), 1, "there is no job 'nothing'"),
        (("restart", "nothing"), 1, "there is no job 'nothing'"),
        (("webhooks", "nothing", "--retry", "0"), 1, "there is no job 'nothing'"),
    ],
)
async def test_what_cannot_be_done_is_reported_in_one_line(
    olga: Terminal, arguments: tuple[str, ...], exit_code: int, message: str
) -> None:
    said = await olga.says("job", *arguments, code=exit_code)
    assert message in said and len(said.splitlines()) == 1


async def test_a_file_is_stored_under_its_content_alone(
    jobs: JobStack, olga: Terminal, tmp_path: Path
) -> None:
    file = tmp_path / "a&b.txt"
    file.write_text("4 5 6")
    digest = hashlib.sha256(b"4 5 6").hexdigest()
    with Client(olga.environment["DOCFLOW_ADDRESS"], OPERATOR) as client:

        def store(sha256: str) -> str:
            return client.store_job_file(job_type="survey", sha256=sha256, file=file).name

        async def refused(sha256: str) -> str:
            with pytest.raises(Problem) as problem:
                await in_thread(store, sha256)
            return str(problem.value)

        assert "has another one" in await refused("0" * 64)
        assert "64 hexadecimal digits" in await refused("abc")
        assert not list((jobs.resources.scratch.parent / "blobs").rglob("a&b.txt"))
        for _ in range(2):
            assert await in_thread(store, digest.upper()) == f"uploads/{digest}/a&b.txt"


async def test_what_is_no_longer_kept_is_removed_by_a_worker(jobs: JobStack) -> None:
    folder = jobs.resources.scratch.parent / "blobs" / "silver"
    (folder / "superseded").mkdir(exist_ok=True)
    (folder / "old.tif").write_bytes(b"old")
    note = {"collection": "c", "item": "i", "due": "2020-01-01T00:00:00Z"}
    text = json.dumps({**note, "uris": ["silver://old.tif"]})
    (folder / "superseded" / "2020-01-01T000000-1.json").write_text(text)

    async def removed(name: str, **order: bool) -> JobRetentionResult:
        return await jobs.client.execute_workflow(
            "JobRetention",
            order,
            id=f"schedule/job-retention-{name}",
            task_queue="jobs",
            result_type=JobRetentionResult,
        )

    dry = await removed("dry", dry_run=True)
    assert dry.named == ("silver://old.tif",) and (folder / "old.tif").exists()
    assert (await removed("real")).files == 1
    assert not (folder / "old.tif").exists()


async def test_programs_read_lists_to_their_ends_and_say_a_parameter_once(olga: Terminal) -> None:
    with Client(olga.environment["DOCFLOW_ADDRESS"], OPERATOR) as client:

        def lists() -> tuple[list[str], list[str]]:
            typed = {"bad": "1", "taken": "7"}
            job = client.start_job(job_type="survey", typed=typed, alias="pages").job_id
            client.wait(f"job/{job}")
            tasks = client.pages(client.list_job_tasks, "pages", limit=2)
            found = client.pages(client.find_jobs, job_type="survey", limit=1)
            assert client.show_job(job).parameters["taken"] == "7"
            return [each.task_index for each in tasks], [each.job_id for each in found]

        tasks, found = await in_thread(lists)
        assert tasks == ["tile-x0", "tile-x1", "tile-x2", "tile-x3", "tile-x0"]
        assert len(found) == len(set(found)) > 0
        with pytest.raises(Problem, match=r"typed\.n: stands in parameters as well"):
            await in_thread(
                lambda: client.start_job(
                    job_type="hello_world", parameters={"n": 1}, typed={"n": "1"}
                )
            )
        with pytest.raises(Problem, match=r"cursor"):
            await in_thread(lambda: client.find_jobs(cursor="x"))
