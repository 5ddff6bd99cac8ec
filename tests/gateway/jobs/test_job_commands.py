"""`docflow submit jobs` and `docflow jobs` over real workers."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from tests.support.cli import run_docflow, run_docflow_in_thread
from tests.support.jobs.gateway import JobStack
from tests.support.jobs.receivers import receiver, with_status
from tests.support.waiting import eventually
from workers.jobs import service
from workers.shared.services.runs import TemporalRuns

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECRET = "planted-secret-of-a-client"


async def docflow(*arguments: str) -> Result:
    return await run_docflow_in_thread(*arguments)


@pytest.mark.usefixtures("commands")
async def test_a_job_is_submitted_followed_and_shown(tmp_path: Path) -> None:
    file = tmp_path / "heights.txt"
    file.write_text("1 2 3")
    done = await docflow("submit", "jobs", "survey", str(file), "--param", "bad=1", "--json")
    assert done.exit_code == 0, done.output
    job = json.loads(done.stdout)
    again = await docflow("submit", "jobs", "survey", str(file), "--param", "bad=1", "--no-follow")
    listed = await docflow("jobs", "list", "--type", "survey", "--json")
    another = ("--param", "n=1", "--param", "message=another")
    await docflow("submit", "jobs", "hello_world", *another)
    first = await docflow("jobs", "list", "--limit", "1", "--json")
    assert "the next page: --before " in first.stderr, first.output
    cursor = first.stderr.split("--before ")[1].split()[0]
    second = await docflow("jobs", "list", "--limit", "1", "--json", "--before", cursor)
    assert json.loads(first.stdout)[0]["job_id"] != json.loads(second.stdout)[0]["job_id"]
    wrong = await docflow("jobs", "list", "--before", "yesterday")
    assert wrong.exit_code == 2 and "--before" in wrong.output
    shown = await docflow("jobs", "show", job["job_id"][:12])
    failed = await docflow("jobs", "tasks", job["job_id"], "--status", "FAILED")
    watched = await docflow("jobs", "watch", job["job_id"][:12])
    assert job["status"] == "COMPLETED" and job["failed_count"] == 1
    assert job["parameters"]["files"].endswith("/heights.txt")
    assert "stage 1 (measure): completed" in done.stderr
    assert f"asked for before: job {job['job_id']}" in again.stdout
    assert job["job_id"] in {each["job_id"] for each in json.loads(listed.stdout)}
    assert "note: heights in <feet> were left out" in shown.stdout
    assert "holds no data" in shown.stdout and "measure" in shown.stdout
    assert "tile-x0" in failed.stdout and "tile-x1" not in failed.stdout
    assert watched.exit_code == 0 and "COMPLETED" in watched.stdout


@pytest.mark.usefixtures("commands")
async def test_webhooks_are_listed_and_sent_again() -> None:
    async with receiver(with_status("200 OK")) as site:
        url = f"http://127.0.0.1:{site.port}/done"
        given = ("--param", f"webhook_url={url}", "--param", f"webhook_secret={SECRET}")
        done = await docflow(
            "submit", "jobs", "hello_world", "--param", "n=1", "--param", "message=cli", *given
        )
        assert done.exit_code == 0, done.output
        listed = await docflow("jobs", "list", "--type", "hello_world", "--limit", "1", "--json")
        job = json.loads(listed.stdout)[0]["job_id"]

        async def reported(times: int) -> bool:
            return len(site.requests) == times

        await eventually(lambda: reported(1))

        async def logged() -> bool:
            return "delivered" in (await docflow("jobs", "webhooks", job)).stdout

        await eventually(logged)
        assert "1 of 4" in (await docflow("jobs", "webhooks", job)).stdout
        again = await docflow("jobs", "webhooks", job, "--send", "0")
        assert again.exit_code == 0, again.output
        await eventually(lambda: reported(2))
    for output in (done.output, listed.output, again.output):
        assert SECRET not in output


@pytest.mark.usefixtures("commands")
@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (("submit", "jobs", "hello_world", "--param", "n"), 2, "write NAME=VALUE"),
        (("submit", "jobs", "hello_world", "--param", "n=1", "--param", "n=2"), 2, "given twice"),
        (("submit", "jobs", "Hello!"), 2, "job_type"),
        (("submit", "jobs", "other"), 1, "'other' is not installed"),
        (("submit", "jobs", "hello_world", "--param", "n=-1"), 1, "parameters.n"),
        (("submit", "jobs", "hello_world", __file__), 1, "hello_world takes no file"),
        (
            ("submit", "jobs", "survey", __file__, "--param", 'files=["a"]'),
            1,
            "give it or a file, not both",
        ),
        (("jobs", "show", "nothing"), 1, "there is no job 'nothing'"),
        (("jobs", "restart", "nothing"), 1, "there is no job 'nothing'"),
        (("jobs", "webhooks", "nothing", "--send", "0"), 1, "there is no job 'nothing'"),
    ],
)
async def test_what_cannot_be_done_is_reported_in_one_line(
    arguments: tuple[str, ...], exit_code: int, message: str
) -> None:
    done = await docflow(*arguments)
    assert done.exit_code == exit_code, done.output
    assert message in done.stderr and len(done.stderr.splitlines()) == 1


async def test_every_pipeline_with_a_submit_command_has_it_in_the_group() -> None:
    help: Any = run_docflow("submit", "--help").stdout
    assert "jobs" in help
    assert run_docflow("submit", "jobs", "--help").exit_code == 0


@pytest.mark.usefixtures("commands")
async def test_what_is_no_longer_kept_is_removed_by_a_worker(
    jobs: JobStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def connected(environment: Any) -> TemporalRuns:
        return TemporalRuns(jobs.client, {})

    monkeypatch.setattr(service, "open_runs", connected)
    folder = jobs.resources.scratch.parent / "blobs" / "silver"
    (folder / "superseded").mkdir(exist_ok=True)
    (folder / "old.tif").write_bytes(b"old")
    note = {"collection": "c", "item": "i", "due": "2020-01-01T00:00:00Z"}
    text = json.dumps({**note, "uris": ["silver://old.tif"]})
    (folder / "superseded" / "2020-01-01T000000-1.json").write_text(text)
    dry = await docflow("jobs", "clean", "--dry-run")
    assert (folder / "old.tif").exists()
    done = await docflow("jobs", "clean", "--json")
    assert "silver://old.tif\nwould be removed: 1 files" in dry.stdout, dry.output
    assert json.loads(done.stdout)["files"] == 1
    assert not (folder / "old.tif").exists()
