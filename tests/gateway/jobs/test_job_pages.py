"""Pages of jobs, as the gateway answers them."""

import re

import pytest

from tests.support.gateway import token
from tests.support.jobs.gateway import PNG, JobStack, ended, submit
from tests.support.jobs.receivers import receiver, with_status
from tests.support.waiting import eventually
from workers.shared.gateway.http.requests import csrf_token
from workers.shared.gateway.pages.site import COOKIE

pytestmark = pytest.mark.asyncio(loop_scope="session")


def signed_in(jobs: JobStack, *roles: str) -> tuple[object, dict[str, str]]:
    session = token("olga", 1, *(roles or ("operator",)))
    return {"cookie": f"{COOKIE}={session}"}, {"csrf": csrf_token(session)}


async def test_a_result_is_shown_with_preview_footprint_and_files(jobs: JobStack) -> None:
    headers, _ = signed_in(jobs)
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
    assert 'viewBox="0 0 320.0 220.0"' in page and "50 km" in page
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
    headers, form = signed_in(jobs)
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
    headers, form = signed_in(jobs)
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


async def test_the_list_is_for_operators_and_so_is_its_entry_in_the_menu(jobs: JobStack) -> None:
    async with jobs.browser() as olga:
        listed = await olga.get("/jobs", headers=signed_in(jobs)[0])
        refused = await olga.get("/jobs", headers=signed_in(jobs, "mapper")[0])
        inbox = await olga.get("/", headers=signed_in(jobs, "mapper")[0])
        away = await olga.get("/jobs")
    assert listed.status_code == 200 and "<h1>Jobs</h1>" in listed.text
    assert refused.status_code == 403 and "lacks the role operator" in refused.text
    assert 'href="/jobs"' in listed.text and 'href="/jobs"' not in inbox.text
    assert away.status_code == 303
