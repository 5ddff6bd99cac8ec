"""The catalogue for people: found, shown on a map, downloaded."""

import re
from html import unescape
from uuid import uuid4

import httpx
import pytest

from activities.jobs.catalogue import Catalogue
from tests.support.gateway import session_of, token
from tests.support.jobs.gateway import PNG, JobStack
from tests.support.jobs.stac import asset, collection, item
from workers.shared.gateway.http.requests import COOKIE

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def browser(jobs: JobStack, organisation: int = 1) -> httpx.AsyncClient:
    session = await session_of(jobs.app, token("vera", organisation, "viewer"))
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(jobs.app),
        base_url="http://docflow",
        headers={"cookie": f"{COOKIE}={session}"},
        timeout=60,
    )


def found(page: str) -> list[str]:
    return re.findall(r'scope="row"><a href="/catalogue/[^"]*"><bdi>([^<]*)', page)


async def test_items_are_found_by_text_time_and_box(jobs: JobStack) -> None:
    name = f"maps-{uuid4().hex[:8]}"
    catalogue = Catalogue(jobs.resources.database)
    await catalogue.put_collection(collection(name, title="Maps <b>of</b> 2024"))
    await catalogue.put_items(
        name,
        [
            item("paris", collection=name, box=(2, 48, 3, 49)),
            item("east_1", collection=name, days=1, box=(20, 40, 21, 41), more={"title": "Ost"}),
            *(item(f"s{at:02}", collection=name, days=9 + at) for at in range(22)),
        ],
    )

    async with await browser(jobs) as vera:

        async def ask(**query: str) -> httpx.Response:
            return await vera.get("/catalogue", params={"collection": name, **query})

        all_of_it = await ask()
        overview = (await vera.get("/catalogue")).text
        by_text, by_title = await ask(text="PAR"), await ask(text="ost")
        literal = await ask(text="e_s")
        by_time = await ask(since="2024-05-01", until="2024-05-02")
        by_box = await ask(west="1,5", south="47", east="4", north="49,5")
        [next] = re.findall(r'rel="next" href="([^"]+)"', all_of_it.text)
        second = (await vera.get(unescape(next))).text
        wrong = [
            await ask(since="yesterday"),
            await ask(since="2024-05-02", until="2024-05-01"),
            await ask(west="1"),
            await ask(west="1", south="2", east="3", north="95"),
            await ask(token="x"),
        ]
    assert (len(found(all_of_it.text)), len(found(second))) == (20, 4)
    assert "24 items" in all_of_it.text and "Maps &lt;b&gt;of&lt;/b&gt; 2024" in overview
    assert found(by_text.text) == ["paris"] and found(by_title.text) == ["Ost"]
    assert found(literal.text) == []
    assert found(by_time.text) == ["Ost", "paris"] and found(by_box.text) == ["paris"]
    # All items of a page are on one map.
    assert by_time.text.count("<svg") == 1 and "from 2.0000 to 21.0000 degrees east" in by_time.text
    assert [each.status_code for each in wrong] == [422] * 5
    assert "“yesterday” is not a day" in wrong[0].text and "No item was found" not in wrong[0].text


async def test_an_item_is_shown_with_its_files_and_picture(jobs: JobStack) -> None:
    name = f"maps-{uuid4().hex[:8]}"
    folder = jobs.resources.scratch.parent / "blobs" / "silver"
    (folder / f"{name}.png").write_bytes(PNG)
    catalogue = Catalogue(jobs.resources.database)
    await catalogue.put_collection(collection(name))
    assets = {
        "data": asset(href=f"silver://{name}.tif", title="<i>Heights</i>"),
        "thumbnail": asset(
            href=f"silver://{name}.png", media_type="image/png", roles=("thumbnail",)
        ),
        "table": asset(href="postgresql:geo.roads", size=None),
    }
    made = item("one", collection=name, assets=assets, more={"note": "<script>"})
    await catalogue.put_items(name, [made])
    own = Catalogue(jobs.resources.database, (1,), 1)
    await own.put_items(name, [item("theirs", collection=name)])
    at = f"/catalogue/{name}/one"
    async with await browser(jobs) as vera, await browser(jobs, 2) as other:
        page = (await vera.get(at)).text
        picture = await vera.get(f"{at}/assets/thumbnail")
        part = await vera.get(f"{at}/assets/thumbnail", headers={"range": "bytes=0-3"})
        gone, table = [await vera.get(f"{at}/assets/{each}") for each in ("data", "table")]
        hidden = [(await one.get(f"/catalogue/{name}/theirs")).status_code for one in (vera, other)]
        listed = found((await other.get("/catalogue", params={"collection": name})).text)
        signed_out = await vera.get(at, headers={"cookie": ""})
    assert await own.delete_item(name, "theirs")
    assert "&lt;i&gt;Heights&lt;/i&gt;" in page and "<bdi>&lt;script&gt;</bdi>" in page
    assert f'<image href="{at}/assets/thumbnail"' in page and "postgresql:geo.roads" in page
    assert f'href="{at}/assets/data" download' in page and f"{at}/assets/table" not in page
    assert (picture.content, picture.headers["content-type"]) == (PNG, "image/png")
    assert "attachment" in picture.headers["content-disposition"]
    assert (part.status_code, part.content) == (206, PNG[:4])
    assert (gone.status_code, table.status_code) == (404, 404)
    assert (hidden, listed) == ([200, 404], ["one"])
    assert signed_out.status_code == 303
