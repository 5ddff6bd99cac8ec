"""Pages of jobs, as the gateway answers them."""

import re

import pytest

from tests.support.gateway import sign_in, token
from tests.support.jobs.gateway import PNG, JobStack, ended, submit
from tests.support.jobs.receivers import receiver, with_status
from tests.support.waiting import eventually
from workers.shared.gateway.http.requests import COOKIE, csrf_token

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def signed_in(jobs: JobStack, *roles: str) -> tuple[dict[str, str], dict[str, str]]:
    async with jobs.browser() as browser:
        session = await sign_in(browser, token("olga", 1, *(roles or ("operator",))))
    return {"cookie": f"{COOKIE}={session}"}, {"csrf": csrf_token(session)}


async def test_a_result_is_shown_with_preview_footprint_and_files(jobs: JobStack) -> None:
    headers, _ = await signed_in(jobs)
    async with jobs.browser() as olga:
        job = await submit(olga, "survey", bad=1)
        await ended(olga, job)
        page = (await olga.get(f"/jobs/{job}", headers=headers)).text
        preview = await olga.get(f"/jobs/{job}/preview", headers=headers)
        address = re.search(r'href="(/jobs/[^"]*files[^"]*)"', page)
        assert address
        file = await olga.get(address[1], headers=headers)
        other = await olga.get(
            f"/jobs/{job}/files", params={"uri": "bronze://other"}, headers=headers
        )
    assert "tile &lt;tile-x0&gt; holds no data" in page and "<tile-x0>" not in page
    assert 'viewBox="0 0 420.0 300.0"' in page and "50 km" in page
    assert "heights in &lt;feet&gt; were left out" in page
    assert '<progress max="4" value="4"' in page
    # It has completed without one of its tasks.
    assert f'action="/jobs/{job}/restart"' in page
    assert (preview.content, preview.headers["content-type"]) == (PNG, "image/png")
    assert file.content == b"1 2 3"
    assert "attachment" in file.headers["content-disposition"]
    assert other.status_code == 404
    assert not list(jobs.resources.scratch.glob("download-*"))


async def test_the_page_of_a_job_that_runs_names_its_events(jobs: JobStack) -> None:
    headers, form = await signed_in(jobs)
    async with jobs.browser() as olga:
        job = await submit(olga, "hello_world", n=5_000, message="page")

        async def there() -> bool:
            return (await olga.get(f"/jobs/{job}", headers=headers)).status_code == 200

        await eventually(there)
        page = (await olga.get(f"/jobs/{job}", headers=headers)).text
        stopped = await olga.post(f"/jobs/{job}/cancel", data=form, headers=headers)
        await ended(olga, job)
        live = (await olga.get(f"/jobs/{job}/live", headers=headers)).text
        revision = re.search(r'data-revision="(\w+)"', live)
        assert revision
        over = await olga.get(
            f"/jobs/{job}/events", headers={**headers, "last-event-id": revision[1]}
        )
        forged = await olga.post(f"/jobs/{job}/restart", data={"csrf": "x"}, headers=headers)
        restarted = await olga.post(f"/jobs/{job}/restart", data=form, headers=headers)
        await olga.delete(f"/api/jobs/{job}")
        await ended(olga, job)
    assert f'data-events="/jobs/{job}/events"' in page and "Yes, cancel it" in page
    assert stopped.status_code == 303
    assert "data-events" not in live and 'hx-target="#actions"' in live
    assert over.status_code == 204
    assert (forged.status_code, restarted.status_code) == (403, 303)


async def test_a_webhook_is_sent_again_from_the_page(jobs: JobStack) -> None:
    headers, form = await signed_in(jobs)
    async with receiver(with_status("500 Oh")) as site, jobs.browser() as olga:
        url = f"http://127.0.0.1:{site.port}/hook?token=s3cret-token"
        job = await submit(
            olga, "hello_world", n=1, message="again", webhook_url=url, webhook_retry_count=0
        )
        await ended(olga, job)

        async def reported(times: int) -> bool:
            return len(site.requests) == times

        await eventually(lambda: reported(1))

        async def logged() -> bool:
            return bool((await olga.get(f"/api/jobs/{job}/webhooks")).json())

        await eventually(logged)
        page = (await olga.get(f"/jobs/{job}", headers=headers)).text
        sent = await olga.post(f"/jobs/{job}/webhooks/0/send", data=form, headers=headers)
        await eventually(lambda: reported(2))
    assert "answered 500" in page and "s3cret-token" not in page
    assert sent.status_code == 303


async def test_the_list_has_what_its_reader_may_see_and_no_form_beyond_that(
    jobs: JobStack,
) -> None:
    parameters = {"parameters": {"ask": True, "bad": 6}}
    asked = {"job_type": "survey", **parameters}
    async with jobs.browser() as olga:
        job = (await olga.post("/api/v1/jobs", json={**asked, "organisation_id": 1})).json()[
            "job_id"
        ]
        other = (await olga.post("/api/v1/jobs", json=asked)).json()["job_id"]

        async def is_parked() -> bool:
            shown = [(await olga.get(f"/api/v1/jobs/{each}")).json() for each in (job, other)]
            return [each["status"] for each in shown] == ["PARKED", "PARKED"]

        await eventually(is_parked, seconds=60)
        listed = await olga.get("/runs?pipeline=jobs", headers=(await signed_in(jobs))[0])
        viewers, form = await signed_in(jobs, "viewer")
        theirs = await olga.get("/runs?pipeline=jobs", headers=viewers)
        page = await olga.get(f"/jobs/{job}", headers=viewers)
        hidden = await olga.get(f"/jobs/{other}", headers=viewers)
        refused = await olga.post(f"/jobs/{job}/cancel", data=form, headers=viewers)
        away = await olga.get("/runs?pipeline=jobs")
        for each in (job, other):
            await olga.delete(f"/api/jobs/{each}")
    assert listed.status_code == 200 and "<h1>Runs</h1>" in listed.text
    assert f"/jobs/{job}" in listed.text and f"/jobs/{other}" in listed.text
    assert f"/jobs/{job}" in theirs.text and f"/jobs/{other}" not in theirs.text
    assert (
        page.status_code == 200
        and "<form" not in page.text.partition("<main")[2].partition("</main>")[0]
    )
    assert (hidden.status_code, refused.status_code) == (404, 403)
    assert away.status_code == 303


async def test_a_stage_is_chosen_knowing_what_is_done_again(jobs: JobStack) -> None:
    headers, form = await signed_in(jobs)
    german = {**headers, "accept-language": "de"}
    async with jobs.browser() as olga:
        job = await submit(olga, "survey", bad=2, taken="2026-05-04")
        await ended(olga, job)
        page = (await olga.get(f"/jobs/{job}", headers=headers)).text
        assert (await olga.get(f"/jobs/{job}", headers=german)).status_code == 200
        given = {**form, "from_stage": "2"}
        wrong = await olga.post(
            f"/jobs/{job}/restart", data={**form, "from_stage": "3"}, headers=headers
        )
        done = await olga.post(f"/jobs/{job}/restart", data=given, headers=headers)

        async def again() -> bool:
            found = await ended(olga, job)
            return found["attempt"] == 2

        await eventually(again)
        after = (await olga.get(f"/jobs/{job}", headers=headers)).text
    assert "2 good tasks are kept. 2 tasks are done again. So is the stage after it." in page
    assert "Its task is done again. The stage before it is kept." in page
    # Each task has a bar, with its state and time; the same stands in a table.
    assert page.count("<rect") == 5 and "<title>tile-x0: Failed, " in page
    assert page.count('data-label="Planned"') == 5
    assert (wrong.status_code, done.status_code) == (422, 303)
    # What was kept has no bar: it was not done in this time.
    assert after.count("<rect") == 1 and "4 kept" in after


async def test_many_tasks_are_drawn_together(jobs: JobStack) -> None:
    headers, _ = await signed_in(jobs)
    async with jobs.browser() as olga:
        job = await submit(olga, "hello_world", n=2_000, message="drawn together")
        await ended(olga, job)
        answer = await olga.get(f"/jobs/{job}", headers=headers)
    page = answer.text
    assert "2,000 completed" in page and page.count("<rect") <= 10
    assert len(page) < 60_000 and answer.elapsed.total_seconds() < 2
    assert "<dt><code><bdi>message</bdi></code></dt><dd><bdi>drawn together</bdi></dd>" in page
