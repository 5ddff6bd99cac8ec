"""Pages of partners, watches and expected files."""

from datetime import UTC, datetime

import pytest

from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.watch_store import SqlWatchStore
from tests.gateway.transfers.conftest import WATCH, TransferGateway, errands
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.watches import PollWatchResult, WatchState

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_partner_is_tested_and_disabled_by_the_page(
    transfers: TransferGateway, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("acme")
    (folder / "out").mkdir()
    store = SqlPartnerStore(transfers.resources.database)
    acme = Partner(
        name="acme",
        kind=PlaceKind.FOLDER,
        container=str(folder),
        contact="<b>Ann</b>",
    )
    await store.put(acme, expected=None)
    other = Partner(name="b", kind=PlaceKind.SFTP, host="b", user="u", password="env:PLANTED")
    await store.put(other, expected=None)
    browser, form = await transfers.browser()
    named = {**form, "name": "acme"}
    async with browser, errands(transfers, {"DOCFLOW_TRANSFERS_FOLDERS": str(folder)}):
        before = (await browser.get("/partners")).text
        tested = await browser.post("/partners/test", data=named)
        after = (await browser.get("/partners")).text
        off = await browser.post("/partners/change", data={**named, "verb": "disable"})
        disabled = (await browser.get("/partners")).text
        odd = await browser.post("/partners/change", data={**named, "verb": "remove"})
        missing = await browser.post("/partners/test", data={**form, "name": "nobody"})
        foreign = await browser.post("/partners/test", data={**named, "csrf": "x"})
    assert "&lt;b&gt;Ann&lt;/b&gt;" in before and "PLANTED" not in before
    assert tested.status_code == 200, tested.text
    assert "can be reached" in tested.text
    assert ">Worked<" in after and ">Worked<" not in before
    assert off.status_code == 303 and ">Disabled<" in disabled
    assert (odd.status_code, missing.status_code, foreign.status_code) == (422, 404, 403)


async def test_watches_show_their_last_looks(transfers: TransferGateway) -> None:
    store = SqlWatchStore(transfers.resources.database)
    state = WatchState(
        watch=WATCH.name,
        looked=datetime.now(UTC),
        result=PollWatchResult(files=3, sent=2, problems=("<i>a</i> is too large",)),
    )
    await store.put_state(state)
    browser, form = await transfers.browser()
    async with browser:
        page = (await browser.get("/watches")).text
        given = {**form, "verb": "pause", "schedule": "transfer-watch-nothing"}
        missing = await browser.post("/watches/change", data=given)
        odd = await browser.post("/watches/change", data={**given, "verb": "explode"})
    assert "3 files, 2 events" in page and "&lt;i&gt;a&lt;/i&gt; is too large" in page
    # Temporal has no schedule of it: there is nothing to pause.
    assert ">Missing<" in page and 'value="pause"' not in page and "06:00" in page
    assert (missing.status_code, odd.status_code) == (404, 422)


@pytest.mark.parametrize("page", ["/partners", "/watches", "/routes"])
async def test_the_pages_are_for_operators(transfers: TransferGateway, page: str) -> None:
    browser, form = await transfers.browser("mapper")
    async with browser:
        assert (await browser.get(page)).status_code == 403
        given = {**form, "verb": "disable", "name": "acme", "schedule": "x"}
        for verb in ("test", "change"):
            answer = await browser.post(f"{page}/{verb}", data=given)
            assert answer.status_code in (403, 404, 405, 422)
        listed = (await browser.get("/runs?pipeline=transfers")).text
    assert f'href="{page}"' not in listed
