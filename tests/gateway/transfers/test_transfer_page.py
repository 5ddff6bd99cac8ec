"""The page of one transfer."""

import re
from contextlib import suppress
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from temporalio.client import WorkflowFailureError

from tests.gateway.transfers.conftest import TransferGateway
from tests.support.transfers.events import a_transfer
from tests.support.transfers.shown import is_parked, refused, shown_transfer, written_receipt
from workflows.shared.contracts import BlobRef
from workflows.transfers.events import TransferStatus
from workflows.transfers.runs import ActionDetails, redrive_id

pytestmark = pytest.mark.asyncio(loop_scope="session")

GERMAN = {"Accept-Language": "de"}


async def test_a_parked_transfer_is_seen_and_tried_again_with_other_settings(
    transfers: TransferGateway,
) -> None:
    browser, form = await transfers.browser()
    database = transfers.resources.database
    async with browser, shown_transfer(transfers.client, database) as shown:
        page = (await browser.get(shown.page)).text
        assert "It waits for your decision" in page and "Waits for a decision" in page
        assert (
            "Wartet auf eine Entscheidung" in (await browser.get(shown.page, headers=GERMAN)).text
        )
        # Every action with its state, its place and how often it has failed.
        assert re.search(r"1\. ReadFile</th>\s*<td.*Done", page)
        assert re.search(r"3\. CallHttp</th>\s*<td.*Waits for a decision", page)
        assert "<bdi>portal</bdi>" in page and "<bdi>POST /hook</bdi>" in page
        assert 'data-label="Failed tries">1</td>' in page
        # Names are shown as they are, and nothing of them is markup, or secret.
        assert "&lt;script&gt;" in page and "<script>alert" not in page
        assert "&lt;b&gt;Größe" in page and "<b>Größe" not in page
        assert "planted-signature" not in page
        wrong = {**form, "decision": "retry", "correction": '{"Path": "/a", "Path": "/b"}'}
        kept = await browser.post(f"{shown.page}/answer", data=wrong)
        assert kept.status_code == 422 and "appears twice" in kept.text
        assert "&#34;Path&#34;: &#34;/a&#34;" in kept.text
        given = {**form, "decision": "retry", "correction": '{"Path": "/fixed"}'}
        answered = await browser.post(f"{shown.page}/answer", data=given)
        assert (answered.status_code, answered.headers["location"]) == (303, shown.page)
        view = await shown.handle.result()
        again = await browser.post(f"{shown.page}/answer", data=given)
    assert view.status is TransferStatus.SUCCEEDED
    last = shown.script.received["call_http"][-1]
    assert (last.names["path"], last.configured_by) == ("/fixed", "olga")
    assert [(each.reason, each.by) for each in shown.script.received["record"]][-1] == (
        "retry: 3. CallHttp",
        "olga",
    )
    assert again.status_code in (404, 409, 422)


async def test_settings_are_read_again_and_wrong_ones_park_it_again(
    transfers: TransferGateway,
) -> None:
    browser, form = await transfers.browser()
    database = transfers.resources.database
    async with browser, shown_transfer(transfers.client, database, "one", "two") as shown:
        # The worker reads the settings; a scripted one does not refuse them as the real one does.
        shown.script.fails["load_plan"] = [refused("action 3 (CallHttp) has no Nothing")]
        wrong = {**form, "decision": "retry", "correction": '{"Nothing": 1}'}
        done = await browser.post(f"{shown.page}/answer", data=wrong)
        assert done.status_code == 303
        view = await is_parked(shown)
        assert view.reason is not None and "has no Nothing" in view.reason
        assert "has no Nothing" in (await browser.get(shown.page)).text
        given = {**form, "decision": "retry", "settings": "again"}
        await browser.post(f"{shown.page}/answer", data=given)
        view = await is_parked(shown)
        found = await shown.handle.query("actions", result_type=ActionDetails)
        assert (found.actions[2].failed_tries, found.actions[2].partner) == (2, "portal")
        assert found.actions[2].ended is not None
        assert shown.script.received["load_plan"][-1].settings
        skip = {**form, "decision": "skip", "reason": "called by <i>hand</i>"}
        await browser.post(f"{shown.page}/answer", data=skip)
        await shown.handle.result()
        page = (await browser.get(shown.page)).text
    [skipped] = [each for each in shown.script.received["receipt"][0].outcomes]
    assert (skipped.outcome, skipped.decided_by) == ("skipped", "olga")
    assert "<i>hand" not in page


async def test_a_transfer_is_given_up_or_cancelled_by_its_page(
    transfers: TransferGateway,
) -> None:
    browser, form = await transfers.browser()
    database = transfers.resources.database
    for verb, data in (("answer", {"decision": "fail"}), ("cancel", {})):
        async with shown_transfer(transfers.client, database) as shown:
            given = {**form, **data, "reason": "sent by mail"}
            foreign = await browser.post(f"{shown.page}/{verb}", data={**given, "csrf": "x"})
            done = await browser.post(f"{shown.page}/{verb}", data=given)
            with suppress(WorkflowFailureError):
                await shown.handle.result()
        assert (foreign.status_code, done.status_code) == (403, 303)
        [closed] = shown.script.received["close"]
        assert (closed.status, closed.by) == (TransferStatus.FAILED, "olga")
        assert "sent by mail" in (closed.reason or "")
    await browser.aclose()


async def test_a_receipt_is_shown_and_one_that_was_changed_is_named(
    transfers: TransferGateway,
) -> None:
    row = await written_receipt(transfers.store, transfers.resources.blobs)
    id, blob = row.transfer_id, row.receipt
    assert blob is not None
    following = a_transfer(redrive_id(id, 1), TransferStatus.SUCCEEDED)
    await transfers.store.record(following)
    browser, _ = await transfers.browser()
    async with browser:
        page = (await browser.get(f"/transfers/{id}")).text
        other = BlobRef(name=blob.name, size=blob.size, sha256="f" * 64)
        at = datetime.now(UTC)
        changes = {"receipt": other, "at": at, "reason": "other"}
        await transfers.store.record(row.model_copy(update=changes))
        changed = (await browser.get(f"/transfers/{id}")).text
        await transfers.resources.blobs.delete(blob.name)
        gone = (await browser.get(f"/transfers/{id}")).text
    assert "Every step is as it was written" in page and "1,234" in page
    assert "signed by &lt;i&gt;acme&lt;/i&gt;; hash" in page and "and 5 more files" in page
    assert f'href="/transfers/{following.transfer_id}"' in page
    assert "<u>a" not in page and "Carry it out anew" in page
    assert "it was written anew" in changed and "it is gone" in gone


async def test_an_event_that_no_rule_matches_is_answered_on_its_page(
    transfers: TransferGateway,
) -> None:
    id = uuid4().hex * 2
    row = a_transfer(
        id,
        TransferStatus.NO_ASSIGNED,
        source="Pricing & Co",
        account_id="P1",
        reason="no rule <b>matches</b>",
    )
    await transfers.store.record(row)
    browser, form = await transfers.browser()
    async with browser:
        page = (await browser.get(f"/transfers/{id}")).text
        # There is a row, and no run of it.
        assigned = await browser.post(f"/transfers/{id}/assign", data={**form, "queue": "jobs"})
        odd = await browser.post(f"/transfers/{id}/assign", data={**form, "queue": "nowhere"})
        rerouted = await browser.post(f"/transfers/{id}/reroute", data=form)
    assert "no rule &lt;b&gt;matches" in page and "Its run could not be asked" in page
    assert assigned.status_code == 404 and "there is no open run" in assigned.text.lower()
    assert odd.status_code == 422 and "no queue nowhere" in odd.text
    assert rerouted.status_code == 503


@pytest.mark.parametrize("verb", ["answer", "assign", "reroute", "cancel", "resend", "redrive"])
async def test_the_page_and_its_answers_are_for_operators(
    transfers: TransferGateway, verb: str
) -> None:
    id = uuid4().hex * 2
    await transfers.store.record(a_transfer(id, TransferStatus.NO_ASSIGNED))
    browser, form = await transfers.browser("mapper")
    async with browser:
        shown = await browser.get(f"/transfers/{id}")
        given = {**form, "decision": "retry", "queue": "jobs"}
        answered = await browser.post(f"/transfers/{id}/{verb}", data=given)
    assert (shown.status_code, answered.status_code) == (404, 404)


@pytest.mark.parametrize("id", ["0" * 64, "nothing", "%2e%2e", "a" * 300])
async def test_what_does_not_exist_is_not_found(transfers: TransferGateway, id: str) -> None:
    browser, _ = await transfers.browser()
    async with browser:
        assert (await browser.get(f"/transfers/{id}")).status_code == 404
