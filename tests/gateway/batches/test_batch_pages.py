"""The pages of cases and batches."""

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape

import pytest
from temporalio.worker import Worker

from activities.batches.store import SqlBatchStore
from activities.batches.validation import CaseBacklog
from adapters.database.records import SqlLeases
from adapters.ports.batches import Claim
from adapters.temporal import TemporalOpenRuns
from tests.gateway.batches.conftest import BatchGateway
from tests.support.batches.scripted import started
from tests.support.batches.shown import REASON, shown_batch
from tests.support.batches.tables import PLAIN, SqlBatchTables, document, load, source
from tests.support.waiting import eventually
from workers.shared.services.errands import ErrandService
from workflows.batches.case_queue import CaseQueue
from workflows.batches.names import TASK_QUEUE, BatchKey, LoaderStatus
from workflows.batches.runs import Closing

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGES = ("/batches", "/batches/801", "/batches/801/1")


async def test_a_parked_batch_is_seen_and_answered(gateway: BatchGateway) -> None:
    browser, form = await gateway.browser()
    async with browser, shown_batch(gateway.client, gateway.database, 801, more=55) as shown:
        page = (await browser.get(shown.page)).text
        assert "It waits for your decision" in page and "redrive" in page
        # Resources with their age, and the queues over time.
        assert re.search(r"subscription</th>\s*<td.*Ready", page) and "less than a minute" in page
        assert '<polyline points="' in page and "dead letters: 2" in page
        # Documents by state, with the reason, a page at a time.
        assert "All 58" in page and "Failed 1" in page and "Duplicate 1" in page
        failed = (await browser.get(shown.page, params={"state": "failed"})).text
        assert "the file is &lt;b&gt;damaged&lt;/b&gt;" in failed and REASON not in failed
        assert "E-000" in failed and "E-001" not in failed
        assert "E-055" not in page
        following = re.search(r'rel="next" href="([^"#]+)', page)
        assert following is not None
        assert "E-055" in (await browser.get(following[1].replace("&amp;", "&"))).text
        # Who waits for whom.
        assert f"{shown.page[:-1]}2" in page and "Waited for by" in page
        case = (await browser.get("/batches/801")).text
        assert "batch 1</a>, which is loading" in case
        waiting = (await browser.get("/batches/801/2")).text
        assert "Batch 1</a> is loading" in waiting
        refused = await browser.post(f"{shown.page}/answer", data={"decision": "fail"})
        assert refused.status_code == 403
        odd = await browser.post(f"{shown.page}/answer", data={**form, "decision": "explode"})
        assert odd.status_code == 422
        given = {**form, "decision": "fail", "reason": "the case was closed"}
        answered = await browser.post(f"{shown.page}/answer", data=given)
        assert (answered.status_code, answered.headers["location"]) == (303, shown.page)
        with pytest.raises(Exception, match="Workflow execution failed"):
            await shown.handle.result()
        [closing] = shown.script.closings
        assert closing.status is LoaderStatus.FAILED
        assert closing.reason is not None and "the case was closed" in closing.reason
        again = await browser.post(f"{shown.page}/answer", data=given)
        assert again.status_code in (404, 409, 422)


async def test_a_batch_whose_worker_is_down_shows_its_rows(gateway: BatchGateway) -> None:
    store, key = SqlBatchStore(gateway.database), BatchKey(case_id=802, batch_id=1)
    await store.note(802, [started(key)])
    browser, _ = await gateway.browser()
    async with browser:
        page = await browser.get("/batches/802/1")
        assert page.status_code == 200 and "Waits" in page.text
        found = (await browser.get("/batches?status=waiting")).text
        assert "/batches/802/1" in found
        assert "/batches/802/1" not in (await browser.get("/batches?status=complete")).text


async def test_a_batch_that_waits_for_the_account_says_for_what_and_where_it_stands(
    gateway: BatchGateway,
) -> None:
    store, leases = SqlBatchStore(gateway.database), SqlLeases(gateway.database)
    room = [Claim("filter policies of a topic", 1, 1)]
    keys = [BatchKey(case_id=804, batch_id=number) for number in (1, 2)]
    await store.note(804, [started(key) for key in keys])
    for key in keys:
        await leases.take(key.workflow_id, room, timedelta(minutes=15))
    browser, _ = await gateway.browser()
    async with browser:
        pages = [(await browser.get(f"/batches/804/{key.batch_id}")).text for key in keys]
    assert "Waits for room in the account" not in pages[0]
    assert "Position 1 of those that wait for <bdi>filter policies of a topic</bdi>" in pages[1]


async def test_batches_that_changed_at_once_stand_on_one_page_each(gateway: BatchGateway) -> None:
    store = SqlBatchStore(gateway.database)
    await store.expect([BatchKey(case_id=803, batch_id=number) for number in range(1, 121)])
    for first in ("/batches/803", "/batches?status=waiting"):
        pages: list[str] = []
        next: str | None = first
        browser, _ = await gateway.browser()
        async with browser:
            while next is not None:
                pages.append((await browser.get(next)).text)
                older = re.search(r'rel="next" href="([^"]+)', pages[-1])
                next = None if older is None else older[1].replace("&amp;", "&")
        assert "Newest" in pages[-1] and "Newest" not in pages[0]
        tables = "".join(page.split('id="batches-heading"')[-1] for page in pages)
        found = re.findall(r'scope="row">.*?/batches/803/(\d+)">', tables)
        assert sorted(map(int, found)) == list(range(1, 121))


async def test_the_moment_of_an_older_address_is_still_read(gateway: BatchGateway) -> None:
    await SqlBatchStore(gateway.database).expect([BatchKey(case_id=804, batch_id=1)])
    browser, _ = await gateway.browser()
    moment = "2999-01-01T00:00:00+00:00"
    async with browser:
        old = await browser.get("/batches/804", params={"before": moment})
        wrong = [
            (await browser.get("/batches/804", params={"before": text})).status_code
            for text in ("yesterday", f"{moment}_1", f"{moment}_0-1", "")
        ]
    assert "/batches/804/1" in old.text.split('id="batches-heading"')[1]
    assert wrong == [422, 422, 404, 422]


async def test_a_batch_that_has_not_ended_is_cancelled_by_its_page(gateway: BatchGateway) -> None:
    store, key = SqlBatchStore(gateway.database), BatchKey(case_id=805, batch_id=1)
    await store.expect([key])
    browser, form = await gateway.browser()
    backlog = CaseBacklog(store, TemporalOpenRuns(gateway.client))
    worker = Worker(
        gateway.client,
        task_queue=TASK_QUEUE,
        workflows=[CaseQueue],
        activities=[backlog.record_events, backlog.skip],
    )
    said = {**form, "mode": "full", "reason": "the case was <b>closed</b>"}
    async with browser, worker:
        assert "Yes, cancel it at once" in (await browser.get("/batches/805/1")).text
        unknown = await browser.post("/batches/805/1/cancel", data={**form, "mode": "all"})
        missing = await browser.post("/batches/805/2/cancel", data=said)
        done = await browser.post("/batches/805/1/cancel", data=said)

        async def is_cancelled() -> bool:
            view = await store.get(key)
            return view is not None and view.status is LoaderStatus.CANCELLED

        await eventually(is_cancelled)
        page = (await browser.get("/batches/805/1")).text
        again = await browser.post("/batches/805/1/cancel", data=said)
        await gateway.client.get_workflow_handle(key.case_workflow_id).terminate()
    assert (unknown.status_code, missing.status_code) == (422, 404)
    assert (done.status_code, done.headers["location"]) == (303, "/batches/805/1")
    assert "cancelled by olga: the case was &lt;b&gt;closed" in page
    assert "cancel it" not in page and again.status_code == 409


async def test_a_batch_whose_run_was_terminated_can_be_cancelled_by_its_page(
    gateway: BatchGateway,
) -> None:
    browser, _ = await gateway.browser()
    async with browser, shown_batch(gateway.client, gateway.database, 807) as shown:
        await shown.handle.terminate()
        page = (await browser.get(shown.page)).text
        assert "Terminated" in page and "Yes, cancel it at once" in page
        store = SqlBatchStore(gateway.database)
        assert await store.terminate(shown.key.workflow_id, "its run was terminated")
        assert "cancel it" not in (await browser.get(shown.page)).text


async def test_a_page_names_fields_of_events_that_are_not_used(gateway: BatchGateway) -> None:
    store, key = SqlBatchStore(gateway.database), BatchKey(case_id=808, batch_id=1)
    event = started(key).model_copy(update={"passed_on": '{"timings": {"polll": 5}, "user": "x"}'})
    await store.note(key.case_id, [event])
    browser, _ = await gateway.browser()
    async with browser:
        page = (await browser.get("/batches/808/1")).text
    assert "JOB_STARTED.timings.polll, JOB_STARTED.user" in page


async def test_cancelled_documents_are_counted_in_the_list(gateway: BatchGateway) -> None:
    tables, key = SqlBatchTables(gateway.database), BatchKey(case_id=806, batch_id=1)
    await tables.batches.note(806, [started(key)])
    assert await tables.batches.claim(key, ())
    for id in ("a", "b"):
        await tables.loads.save_source(document(id, key), source(id))
    reason = "the case was closed"
    await tables.batches.close(Closing(key=key, status=LoaderStatus.CANCELLED, reason=reason))
    await tables.batches.stop_documents(key)
    browser, _ = await gateway.browser()
    async with browser:
        page = (await browser.get("/batches/806")).text
    assert 'data-label="Cancelled">2</td>' in page and 'data-label="Loading">0</td>' in page


@pytest.mark.parametrize("page", PAGES)
async def test_the_pages_are_for_operators(gateway: BatchGateway, page: str) -> None:
    browser, form = await gateway.browser("mapper")
    async with browser:
        assert (await browser.get(page)).status_code == 403
        answer = await browser.post("/batches/801/1/answer", data={**form, "decision": "retry"})
        assert answer.status_code == 403
        answer = await browser.post("/batches/801/1/cancel", data={**form, "mode": "full"})
        assert answer.status_code == 403
        assert 'href="/batches"' not in (await browser.get("/")).text


@pytest.mark.parametrize(
    "page", ["/batches/0", "/batches/x", "/batches/899", "/batches/899/1", "/batches/1/9999999999"]
)
async def test_what_does_not_exist_is_not_found(gateway: BatchGateway, page: str) -> None:
    browser, _ = await gateway.browser()
    async with browser:
        assert (await browser.get(page)).status_code == 404


async def test_what_was_read_of_a_document_is_shown(gateway: BatchGateway) -> None:
    tables, key = SqlBatchTables(gateway.database), BatchKey(case_id=809, batch_id=1)
    await tables.batches.note(809, [started(key)])
    assert await tables.batches.claim(key, ())
    id = "mail 1 <b>&"
    read = replace(PLAIN, text="Dear <b>Ada</b>, " + "x" * 6_000, title="<i>Minutes</i>", pages=3)
    await load(tables.loads, document(id, key), source("c"), read)
    browser, _ = await gateway.browser()
    async with browser:
        page = (await browser.get("/batches/809/1")).text
        [address] = re.findall(r'href="(/batches/809/1/document\?id=[^"]+)"', page)
        shown = (await browser.get(unescape(address))).text
        missing = await browser.get("/batches/809/1/document?id=other")
    assert "<bdi>&lt;i&gt;Minutes&lt;/i&gt;</bdi>" in page and "3 pages" in page
    assert "6,017 bytes of text" in page and "Loaded</span> one document" in page
    assert "Dear &lt;b&gt;Ada&lt;/b&gt;, xxx" in shown and "The beginning of it." in shown
    assert "x" * 5_000 not in shown and "<b>" not in shown
    assert missing.status_code == 404


async def test_a_batch_is_finished_and_its_dead_letters_tried_again_by_its_page(
    gateway: BatchGateway,
) -> None:
    browser, form = await gateway.browser()
    # No worker does errands here.
    gateway.app.state.by_class[ErrandService] = ErrandService(gateway.client, patience=0.2)
    backlog = CaseBacklog(SqlBatchStore(gateway.database), TemporalOpenRuns(gateway.client))
    worker = Worker(
        gateway.client,
        task_queue=TASK_QUEUE,
        workflows=[CaseQueue],
        activities=[backlog.record_events, backlog.skip],
    )
    async with browser, shown_batch(gateway.client, gateway.database, 810) as shown:
        page = (await browser.get(shown.page)).text
        messages = (await browser.get(f"{shown.page}/messages")).text
        wrong = await browser.post(f"{shown.page}/finish", data={**form, "documents": "many"})
        async with worker:
            tried = await browser.post(f"{shown.page}/redrive", data=form)
            await gateway.client.get_workflow_handle(shown.key.case_workflow_id).terminate()
        foreign = await browser.post(f"{shown.page}/redrive", data={"csrf": "x"})
        found = await browser.get("/batches", params={"case": "810"})
        odd = await browser.get("/batches", params={"case": "8 1"})
    assert 'name="with_failed"' in page and f"{shown.page}/messages" in page
    # It has a timeline of what its run did, and of its documents.
    assert '<ol class="history">' in page and "waits for a person" in page
    assert "Loaded</span> one document" in page
    assert "No worker could look into the queue" in messages
    assert (wrong.status_code, tried.status_code, foreign.status_code) == (422, 303, 403)
    assert (found.status_code, found.headers["location"]) == (303, "/batches/810")
    assert odd.status_code == 422
