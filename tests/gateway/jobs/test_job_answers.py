"""Jobs that ask, wait or have failed: answered and restarted over HTTP, on pages, by commands."""

from typing import Any

import httpx
import pytest

from tests.gateway.jobs.test_job_pages import signed_in
from tests.gateway.test_commands import Terminal
from tests.support.jobs.gateway import JobStack, ended, submit
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def in_status(browser: httpx.AsyncClient, job: str, status: str) -> dict[str, Any]:
    """Wait until a job has a status, and all of it is written down."""
    document: dict[str, Any] = {}

    async def there() -> bool:
        nonlocal document
        document = (await browser.get(f"/api/jobs/{job}")).json()
        row = (await browser.get("/api/jobs", params={"status": status, "limit": 500})).json()
        listed = {each["job_id"] for each in row["jobs"]}
        return document.get("status") == status and job in listed

    await eventually(there)
    return document


async def test_a_question_is_answered_over_http(jobs: JobStack) -> None:
    async with jobs.browser() as olga:
        job = await submit(olga, "survey", ask=True, files=[])
        asks = await in_status(olga, job, "PARKED")
        address = f"/api/jobs/{job}/answer"
        wrong = await olga.post(address, json={"parameters": {"taken": 5, "colour": "red"}})
        inputs = await olga.post(
            address, json={"parameters": {"taken": "2024", "files": "other.txt"}}
        )
        hook = await olga.post(address, json={"parameters": {"webhook_url": "https://a.example"}})
        nothing = await olga.post(address)
        mixed = await olga.post(address, json={"decision": "skip", "parameters": {"taken": "x"}})
        answered = await olga.post(address, json={"parameters": {"taken": "2024"}})
        document = await ended(olga, job)
        late = await olga.post(address, json={"parameters": {"taken": "2024"}})
    assert asks["questions"] == [{"parameter": "taken", "question": "when was <it> surveyed?"}]
    assert {each["location"] for each in wrong.json()["errors"]} == {
        "parameters.taken",
        "parameters.colour",
    }
    assert "make another job" in inputs.json()["errors"][0]["message"]
    assert "names receivers" in hook.json()["errors"][0]["message"]
    assert "retry needs the parameter taken" in nothing.json()["detail"]
    refused = (wrong, inputs, hook, nothing, mixed)
    assert {each.status_code for each in refused} == {422}
    assert answered.status_code == 202, answered.text
    assert (document["status"], document["parameters"]["taken"]) == ("COMPLETED", "2024")
    assert late.status_code == 409


async def test_a_question_is_answered_on_its_page_and_named_in_the_inbox(jobs: JobStack) -> None:
    headers, form = await signed_in(jobs)
    async with jobs.browser() as olga:
        job = await submit(olga, "survey", ask=True, bad=1)
        await in_status(olga, job, "PARKED")
        page = (await olga.get(f"/jobs/{job}", headers=headers)).text
        inbox = (await olga.get("/", headers=headers)).text
        live = (await olga.get(f"/jobs/{job}/live?shown=PARKED", headers=headers)).text
        begun = (await olga.get(f"/jobs/{job}/live?shown=PROCESSING", headers=headers)).text
        untold = await olga.post(f"/jobs/{job}/answer", data=form, headers=headers)
        line = await olga.post(
            f"/jobs/{job}/answer", data={**form, "others": "bad"}, headers=headers
        )
        odd = await olga.post(
            f"/jobs/{job}/answer", data={**form, "decision": "maybe"}, headers=headers
        )
        answered = await olga.post(
            f"/jobs/{job}/answer",
            data={**form, "parameter.taken": "2024", "others": "bad = 2\n", "decision": "retry"},
            headers=headers,
        )
        document = await ended(olga, job)
        after = (await olga.get(f"/jobs/{job}", headers=headers)).text
    assert 'name="parameter.taken" required' in page and "&lt;it&gt; surveyed?" in page
    assert f'href="/jobs/{job}#answer"' in inbox and "&lt;it&gt; surveyed?" in inbox
    assert "hx-partial" not in live and 'hx-target="#answer"' in begun
    assert (untold.status_code, line.status_code, odd.status_code) == (422, 422, 422)
    assert answered.status_code == 303
    given = document["parameters"]
    assert (document["status"], given["taken"], given["bad"]) == ("COMPLETED", "2024", 2)
    assert "parameter.taken" not in after


async def test_a_parked_job_is_given_up_on_its_page(jobs: JobStack) -> None:
    headers, form = await signed_in(jobs)
    async with jobs.browser() as olga:
        job = await submit(olga, "survey", ask=True, bad=3)
        await in_status(olga, job, "PARKED")
        given_up = await olga.post(
            f"/jobs/{job}/answer",
            data={**form, "decision": "fail", "reason": "too old"},
            headers=headers,
        )
        document = await ended(olga, job)
    assert given_up.status_code == 303
    assert document["status"] == "FAILED" and "too old (olga)" in document["error_details"]


async def test_a_question_is_answered_by_a_command(jobs: JobStack, olga: Terminal) -> None:
    given = ("--param", "ask=true", "--param", "bad=2")
    [job] = (
        await olga.says("job", "submit", "survey", *given, "--no-follow", "-o", "name")
    ).split()
    await olga.says("job", "show", job, "--watch", code=4)
    shown = await olga.says("job", "show", job)
    assert f"docflow retry {job[:12]} --set taken=..." in shown
    untold = await olga.says("retry", job[:12], code=2)
    assert "retry needs the parameter taken" in untold
    wrong = await olga.says("retry", job[:12], "--set", "colour=red", code=2)
    assert "parameters.colour" in wrong
    await olga.says("retry", job[:12], "--set", "taken=2024", "--set", "bad=1")
    async with jobs.browser() as browser:
        document = await ended(browser, job)
    # What reads like a number stays the text that its field takes.
    parameters = document["parameters"]
    assert (document["status"], parameters["taken"], parameters["bad"]) == ("COMPLETED", "2024", 1)


async def test_a_restart_keeps_good_stages_with_their_counts_and_tasks(jobs: JobStack) -> None:
    headers, form = await signed_in(jobs)
    async with jobs.browser() as olga:
        job = await submit(olga, "survey", broken=True, bad=1)
        failed = await ended(olga, job)
        restarted = await olga.post(f"/api/jobs/{job}/restart")
        document = await ended_at(olga, job, 2)
        tasks = (await olga.get(f"/api/jobs/{job}/tasks")).json()["tasks"]
        whole = await olga.post(
            f"/jobs/{job}/restart", data={**form, "from_stage": "1"}, headers=headers
        )
        third = await ended_at(olga, job, 3)
        anew = (await olga.get(f"/api/jobs/{job}/tasks")).json()["tasks"]
    assert (failed["status"], failed["stages"][1]["state"]) == ("FAILED", "failed")
    assert restarted.status_code == 202 and restarted.json()["attempt"] == 2
    assert document["status"] == "COMPLETED"
    first = document["stages"][0]
    assert (first["state"], first["counts"]["completed"], first["counts"]["failed"]) == (
        "completed",
        3,
        1,
    )
    assert [(each["stage"], each["attempt"]) for each in tasks] == [(1, 1)] * 4 + [(2, 2)]
    assert whole.status_code == 303 and third["status"] == "COMPLETED"
    assert [(each["stage"], each["attempt"]) for each in anew] == [(1, 3)] * 4 + [(2, 3)]


async def test_a_job_is_restarted_by_a_command(jobs: JobStack, olga: Terminal) -> None:
    async with jobs.browser() as browser:
        job = await submit(browser, "survey", broken=True)
        await ended(browser, job)
        assert (await olga.json("job", "restart", job[:12]))["attempt"] == 2
        second = await ended_at(browser, job, 2)
        again = await olga.says("job", "restart", job[:12], "--from-stage", "2")
        third = await ended_at(browser, job, 3)
        tasks = await olga.json("job", "show", job, "tasks")
    assert f"attempt 3 of job {job[:12]} has begun" in again
    assert (second["status"], third["status"]) == ("COMPLETED", "COMPLETED")
    assert [(each["stage"], each["attempt"]) for each in tasks] == [(1, 1)] * 4 + [(2, 3)]


async def ended_at(browser: httpx.AsyncClient, job: str, attempt: int) -> dict[str, Any]:
    """Wait until an attempt has ended."""
    document: dict[str, Any] = {}

    async def over() -> bool:
        nonlocal document
        document = await ended(browser, job)
        return document["attempt"] == attempt

    await eventually(over)
    return document


async def test_a_job_says_what_its_tasks_wait_for(jobs: JobStack, olga: Terminal) -> None:
    headers, _ = await signed_in(jobs)
    async with jobs.browser() as browser:
        job = await submit(browser, "survey", late=True)
        document: dict[str, Any] = {}

        async def waits() -> bool:
            nonlocal document
            document = (await browser.get(f"/api/jobs/{job}")).json()
            return bool(document.get("awaits"))

        await eventually(waits)
        page = (await browser.get(f"/jobs/{job}", headers=headers)).text
        shown = await olga.says("job", "show", job[:12])
        await browser.delete(f"/api/jobs/{job}")
        over = await ended(browser, job)
    said = "what 1 task needs: the archive fetches it"
    assert (document["status"], document["awaits"]["what"]) == ("PROCESSING", said)
    assert f"for <bdi>{said}</bdi>" in page and "continues by itself" in page
    assert "the archive fetches it" in shown
    assert over["awaits"] is None
