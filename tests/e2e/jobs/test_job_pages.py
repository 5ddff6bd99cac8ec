"""The pages of jobs in a real browser: live, without scripts, on a phone."""

import json
from typing import Any

import httpx
import pytest
from playwright.async_api import expect

from tests.support.jobs.receivers import receiver, with_status
from tests.support.pages import PagesSetup, overflow, violations
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def started(site: PagesSetup, job_type: str = "hello_world", **parameters: Any) -> str:
    """Path of the page of a job that was asked for over HTTP."""
    token = site.token("olga", ["operator"])
    async with httpx.AsyncClient(
        base_url=site.address, headers={"authorization": f"Bearer {token}"}, timeout=60
    ) as browser:
        answer = await browser.post(
            "/api/jobs", json={"job_type": job_type, "parameters": parameters}
        )
    assert answer.status_code == 201, answer.text
    return f"/jobs/{answer.json()['job_id']}"


async def test_a_job_is_followed_live_and_its_webhook_sent_again(site: PagesSetup) -> None:
    async with receiver(with_status("200 OK")) as hook:
        url = f"http://127.0.0.1:{hook.port}/done"
        job = await started(site, n=400, message="followed", webhook_url=url)
        async with site.visit(start=job) as page:
            bar = page.get_by_role("progressbar", name="Tasks of stage greeting")
            await expect(bar).to_have_attribute("max", "400")
            # Nothing is loaded again by hand.
            status = page.get_by_role("status").first
            await expect(status).to_contain_text("Completed", timeout=60_000)
            await expect(bar).to_have_attribute("value", "400")
            await expect(page.get_by_text("Cancel the job")).to_be_hidden()

            async def logged() -> bool:
                await page.reload()
                return await page.get_by_text("Delivered").is_visible()

            await eventually(logged)
            await page.get_by_role("button", name="Send again").click()
            await expect(page.get_by_role("heading", name="Webhooks")).to_be_visible()
    assert len(hook.requests) >= 1


async def test_a_page_works_without_scripts(site: PagesSetup) -> None:
    job = await started(site, n=2, message="without scripts")
    async with site.visit(start=job, scripts=False) as page:
        await expect(page.get_by_role("heading", name="hello_world")).to_be_visible()
        await page.get_by_role("link", name="Failed").click()
        await expect(page.get_by_text("No task is in this status.")).to_be_visible()


async def test_a_question_is_answered_on_a_phone_and_the_page_follows(site: PagesSetup) -> None:
    place = {"type": "Point", "coordinates": [9.0, 48.0]}
    feature = {"type": "Feature", "geometry": place, "properties": {"name": "well"}}
    text = json.dumps(feature)
    (site.folder / "blobs" / "bronze" / "wells.geojson").write_text(text)
    job = await started(site, "process_vector", source="wells.geojson")
    async with site.visit(start=job, width=400) as page:
        # The form comes by itself when the job asks.
        asked = page.get_by_label("datetime")
        await expect(asked).to_be_visible()
        form = page.get_by_role("region", name="It asks you")
        await expect(form).to_contain_text("when were the data of wells.geojson acquired")
        assert await violations(page) == []
        assert await overflow(page) <= 0
        await page.goto("/")
        await page.get_by_role("link", name="Answer").click()
        await asked.fill("2024-05-31")
        await page.get_by_role("button", name="Answer and continue").click()
        await expect(page.get_by_role("status").first).to_contain_text("Completed")
        await expect(asked).to_be_hidden()
