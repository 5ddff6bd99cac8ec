"""The page of routes."""

import json
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from tests.gateway.transfers.conftest import TransferGateway
from tests.support.transfers.events import a_transfer
from workflows.transfers.events import TransferStatus
from workflows.transfers.routes import RouteRule

pytestmark = pytest.mark.asyncio(loop_scope="session")

RULE = RouteRule(queue="jobs", rule="1", source="<b>TMS</b>", by="ada")


async def test_a_rule_is_added_disabled_and_removed(transfers: TransferGateway) -> None:
    browser, form = await transfers.browser()
    async with browser:
        added = await browser.post(
            "/routes/add", data={**form, "new_queue": "jobs", "new_source": "TMS.*"}
        )
        assert added.status_code == 303, added.text
        (rule,) = await transfers.routes.rules()
        assert (rule.queue, rule.source, rule.by, rule.subject) == ("jobs", "TMS.*", "olga", "*")
        which = {**form, "queue": "jobs", "rule": rule.rule}
        await browser.post("/routes/change", data={**which, "verb": "disable"})
        assert not (await transfers.routes.rules())[0].enabled
        page = (await browser.get("/routes")).text
        assert "Disabled" in page and "changed (disabled) by <bdi>olga</bdi>" in page
        await browser.post("/routes/change", data={**which, "verb": "remove"})
    assert await transfers.routes.rules() == []


async def test_what_is_refused_stays_in_the_form(transfers: TransferGateway) -> None:
    await transfers.routes.put(RULE)
    browser, form = await transfers.browser()
    async with browser:
        answer = await browser.post(
            "/routes/add", data={**form, "new_queue": "jobs", "new_source": RULE.source}
        )
    assert answer.status_code == 422
    assert "with nothing to say which of them wins" in answer.text
    assert 'value="&lt;b&gt;TMS&lt;/b&gt;"' in answer.text
    assert "<b>TMS</b>" not in answer.text


async def test_an_event_that_nothing_matched_fills_the_form(transfers: TransferGateway) -> None:
    await transfers.store.record(
        a_transfer(
            uuid4().hex * 2,
            TransferStatus.NO_ASSIGNED,
            source="Pricing & Co",
            account_id="P1",
            type="Succeeded",
            subject="Price Update",
        )
    )
    browser, form = await transfers.browser()
    async with browser:
        page = (await browser.get("/routes")).text
        assert "new_source=Pricing%20%26%20Co" in page
        filled = (await browser.get("/routes?new_source=Pricing%20%26%20Co")).text
        rerouted = await browser.post("/routes/reroute", data=form)
    assert 'name="new_source" value="Pricing &amp; Co"' in filled
    # There is a row, and no run of it.
    assert rerouted.status_code == 503 and "not routed again" in rerouted.text


async def test_of_many_events_that_nothing_matched_the_page_says_the_number(
    transfers: TransferGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.transfers.routes._UNMATCHED", 1)
    for _ in range(2):
        id = uuid4().hex * 2
        now = datetime.now(UTC)
        await transfers.store.record(
            a_transfer(id, TransferStatus.NO_ASSIGNED, at=now, source="TMS", event_id=id)
        )
    total = await transfers.store.count(TransferStatus.NO_ASSIGNED)
    browser, _ = await transfers.browser()
    async with browser:
        page = (await browser.get("/routes")).text
    assert f"The newest 1 of {total} events." in page


async def test_an_event_is_tried_with_the_reasons_of_the_others(
    transfers: TransferGateway,
) -> None:
    await transfers.routes.put(RULE.model_copy(update={"source": "TMS"}))
    await transfers.routes.put(RULE.model_copy(update={"source": "tms", "rule": "2"}))
    event = {"source": "TMS", "type": "t", "subject": "s", "data": {"accountId": "A"}}
    browser, form = await transfers.browser()
    async with browser:
        tried = await browser.post("/routes/test", data={**form, "event": json.dumps(event)})
        wrong = await browser.post("/routes/test", data={**form, "event": "{"})
        typed = {"source": "Other", "type": "t", "subject": "s", "account_id": "A"}
        given = {f"tried_{name}": text for name, text in typed.items()}
        none = await browser.post("/routes/test", data={**form, **given})
        lacking = await browser.post("/routes/test", data={**form, "tried_source": "TMS"})
    assert "takes it: queue <bdi>jobs</bdi>" in tried.text
    # Each attribute says why it matched; what was pasted stands in the fields.
    assert "is exactly it" in tried.text and tried.text.count("takes anything</td>") == 3
    assert 'name="tried_account_id" value="A"' in tried.text
    assert "None of 2 rules takes it." in none.text
    assert "source is &#39;Other&#39;, not &#39;TMS&#39;" in none.text
    assert lacking.status_code == 422 and "the event lacks" in lacking.text.lower()
    assert "they differ in upper and lower case" in tried.text
    assert wrong.status_code == 422 and "not JSON" in wrong.text


async def test_rules_are_filtered(transfers: TransferGateway) -> None:
    await transfers.routes.put(RULE.model_copy(update={"source": "TMS.Route"}))
    await transfers.routes.put(
        RULE.model_copy(update={"source": "Pricing", "queue": "jobstmsroute"})
    )
    browser, _ = await transfers.browser()
    async with browser:
        by_queue = (await browser.get("/routes?queue=jobstmsroute")).text
        by_text = (await browser.get("/routes?find=tms.r")).text
        none = (await browser.get("/routes?find=elsewhere")).text
    assert "<bdi>Pricing</bdi>" in by_queue and "<bdi>TMS.Route</bdi>" not in by_queue
    assert "<bdi>TMS.Route</bdi>" in by_text and "<bdi>Pricing</bdi>" not in by_text
    assert "No rule like that." in none


async def test_a_form_of_another_site_changes_nothing(transfers: TransferGateway) -> None:
    browser, _ = await transfers.browser()
    async with browser:
        answer = await browser.post("/routes/add", data={"csrf": "x", "new_queue": "jobs"})
    assert answer.status_code == 403
    assert await transfers.routes.rules() == []
