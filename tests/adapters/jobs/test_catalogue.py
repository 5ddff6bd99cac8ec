"""What the catalogue promises about writing and paging."""

import asyncio
from dataclasses import replace

import pytest

from activities.jobs.catalogue import ORGANISATION, Catalogue
from activities.jobs.ports import CatalogueQuery
from activities.jobs.stac_queries import filter_of_text
from adapters.database.engine import open_database
from adapters.ports.errors import Unavailable
from stack.children import free_port
from tests.support.chaos import kills
from tests.support.jobs.catalogue_writers import count, write_at_once
from tests.support.jobs.stac import (
    EVERYWHERE,
    PARIS,
    altered,
    collection,
    found,
    ids,
    item,
    put_scenes,
)
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import InvalidDocument, RuleViolation


@pytest.fixture
async def scenes(catalogue: Catalogue) -> Catalogue:
    return await put_scenes(catalogue)


async def test_an_item_comes_back_as_it_was_put(scenes: Catalogue) -> None:
    put = item("paris", box=PARIS, more={"eo:cloud_cover": 12.5, "platform": "kestrel"})
    assert await scenes.item("scenes", "paris") == put
    assert (await scenes.search(replace(EVERYWHERE, ids=["paris"]))).items == [put]
    assert await scenes.item("scenes", "london") is None
    assert await scenes.item("others", "paris") is None


async def test_a_collection_grows_with_its_items(scenes: Catalogue) -> None:
    await scenes.put_collection(collection("others", title="Others"))
    assert ids(await scenes.collections()) == ["others", "scenes"]
    known = await scenes.collection("scenes")
    assert known is not None
    assert known["extent"]["spatial"]["bbox"] == [[-180, -20, 180, 49]]
    assert known["extent"]["temporal"]["interval"][0][0] == "2024-05-01T10:00:00Z"
    await scenes.put_collection(collection(title="Renamed"))
    renamed = await scenes.collection("scenes")
    assert renamed is not None and renamed["title"] == "Renamed"
    assert renamed["extent"] == known["extent"]
    assert await scenes.collection("missing") is None


async def test_pages_lead_forwards_and_back(catalogue: Catalogue) -> None:
    await catalogue.put_collection(collection())
    # Three of each moment: the order of equal ones is theirs by id.
    await catalogue.put_items("scenes", [item(f"s{at:02}", days=at // 3) for at in range(25)])
    every = await found(catalogue)
    assert every == sorted(every, reverse=True) and len(every) == 25
    forwards: list[list[str]] = []
    query = CatalogueQuery(limit=10)
    while True:
        page = await catalogue.search(query)
        assert (page.previous is None) == (not forwards)
        forwards.append(ids(page.items))
        if page.next is None:
            break
        query = replace(query, token=page.next)
    assert [len(part) for part in forwards] == [10, 10, 5]
    assert [each for part in forwards for each in part] == every
    back = await catalogue.search(replace(query, token=page.previous))
    assert ids(back.items) == forwards[1]
    first = await catalogue.search(replace(query, token=back.previous))
    assert ids(first.items) == forwards[0] and first.previous is None
    assert first.next is not None
    again = await catalogue.search(replace(query, token=first.next))
    assert ids(again.items) == forwards[1]


async def test_pages_hold_what_a_filter_leaves(catalogue: Catalogue) -> None:
    await catalogue.put_collection(collection())
    await catalogue.put_items(
        "scenes", [item(f"s{at:02}", days=at, more={"n:odd": at % 2}) for at in range(20)]
    )
    query = CatalogueQuery(limit=4, filter=filter_of_text("n:odd = 1"))
    first = await catalogue.search(query)
    second = await catalogue.search(replace(query, token=first.next))
    third = await catalogue.search(replace(query, token=second.next))
    together = ids([*first.items, *second.items, *third.items])
    assert together == [f"s{at:02}" for at in range(19, 0, -2)]
    assert third.next is None


async def test_the_same_id_again_leaves_one_item(scenes: Catalogue) -> None:
    await scenes.put_items("scenes", [item("paris", days=900, box=(50, 50, 51, 51))])
    assert (await found(scenes)).count("paris") == 1
    assert await found(scenes, bbox=PARIS) == []
    assert await found(scenes, bbox=(50, 50, 51, 51)) == ["paris"]
    assert await found(scenes, datetime="../2024-05-01T23:00:00Z") == []
    await scenes.put_items("scenes", [item("paris", days=-900)])
    assert (await found(scenes))[-1] == "paris"


async def test_an_id_may_be_used_in_two_collections(scenes: Catalogue) -> None:
    await scenes.put_collection(collection("others"))
    await scenes.put_items("others", [item("paris", collection="others")])
    assert await found(scenes, ids=["paris"]) == ["paris", "paris"]
    assert await scenes.delete_item("others", "paris")
    assert await found(scenes, ids=["paris"]) == ["paris"]


async def test_items_are_written_all_or_none(scenes: Catalogue) -> None:
    wrong = altered(item("wrong"), "bbox", [0, 0, 1, 1])
    with pytest.raises(InvalidDocument, match="'wrong'"):
        await scenes.put_items("scenes", [item("right"), wrong])
    with pytest.raises(InvalidDocument, match="given twice"):
        await scenes.put_items("scenes", [item("right"), item("right", days=1)])
    assert await scenes.item("scenes", "right") is None
    with pytest.raises(InvalidDocument, match="no collection 'others'"):
        await scenes.put_items("others", [item("right", collection="others")])
    with pytest.raises(InvalidDocument, match="collection"):
        await scenes.put_collection({"id": "Wrong"})
    await scenes.put_items("scenes", [])


async def test_a_deleted_item_is_no_longer_found(scenes: Catalogue) -> None:
    assert await scenes.delete_item("scenes", "fiji")
    assert not await scenes.delete_item("scenes", "fiji")
    assert await found(scenes, bbox=(170, -30, -170, 0)) == []
    await scenes.put_items("scenes", [item("fiji", box=(177, -20, -178, -15))])
    assert await found(scenes, bbox=(170, -30, -170, 0)) == ["fiji"]


async def test_concurrent_writers_lose_nothing(catalogue: Catalogue) -> None:
    await catalogue.put_collection(collection())

    async def write(writer: int) -> None:
        for at in range(0, 12, 3):
            # Each writes its own items, and one that all of them write.
            own = [item(f"w{writer}-{at + more}", days=at * 40) for more in range(3)]
            await catalogue.put_items("scenes", [*own, item("shared", days=writer * 30)])

    await asyncio.gather(*map(write, range(8)))
    assert len(await found(catalogue, limit=1_000)) == 8 * 12 + 1
    known = await catalogue.collection("scenes")
    assert known is not None
    assert known["extent"]["temporal"]["interval"] == [
        ["2024-05-01T10:00:00Z", "2025-04-26T10:00:00Z"]
    ]


async def test_a_database_that_does_not_answer_is_an_outage() -> None:
    async with open_database(f"postgresql://nobody@127.0.0.1:{free_port()}/nothing") as database:
        catalogue = Catalogue(database)
        for asked in (
            catalogue.collections(),
            catalogue.item("scenes", "a"),
            catalogue.search(EVERYWHERE),
            catalogue.put_collection(collection()),
            catalogue.put_items("scenes", [item()]),
            catalogue.delete_item("scenes", "a"),
        ):
            with pytest.raises(Unavailable) as refused:
                await asked
            assert refused.value.dependency is Dependency.DATABASE


async def test_what_the_database_cannot_store_is_refused_or_not_there(scenes: Catalogue) -> None:
    for text in ("a\0b", "\\\0", "\ud800"):
        with pytest.raises(InvalidDocument, match=r"NUL|strict JSON"):
            await scenes.put_items("scenes", [item("odd", more={"n:text": text})])
    kept = item("odd", more={"n:text": "\\u0000 \U0001f600", "n:small": 1e-7, "n:large": 1e300})
    await scenes.put_items("scenes", [kept])
    assert await scenes.item("scenes", "odd") == kept
    assert await scenes.item("scenes", "a\0b") is None
    assert await scenes.collection("a\0b") is None
    with pytest.raises(RuleViolation, match="not valid"):
        await found(scenes, ids=["a\0b"])


@pytest.mark.chaos
def test_eight_writers_of_two_thousand_items_lose_none(database_url: str) -> None:
    assert asyncio.run(write_at_once(database_url, 8, kills(40, 250))) == []
    assert asyncio.run(count(database_url)) == 8 * kills(40, 250)


async def test_what_an_organisation_has_is_its_own(scenes: Catalogue) -> None:
    ours, theirs = scenes.acting_for(1), scenes.acting_for(2)
    await ours.put_collection(collection("harbours"))
    await ours.put_items("harbours", [item("pier", collection="harbours")])
    await ours.put_items("scenes", [item("bay", box=(-60, -60, -59, -59))])
    for catalogue, sees in ((scenes, True), (ours, True), (theirs, False)):
        assert (await catalogue.item("scenes", "bay") is not None) == sees
        assert (await catalogue.collection("harbours") is not None) == sees
        assert ("bay" in await found(catalogue)) == ("pier" in await found(catalogue)) == sees
        assert ("harbours" in ids(await catalogue.collections())) == sees
        assert "paris" in await found(catalogue)
    bay = await ours.item("scenes", "bay")
    assert bay is not None and bay["properties"][ORGANISATION] == 1
    # Everybody sees this extent.
    shared = await scenes.collection("scenes")
    assert shared is not None and shared["extent"]["spatial"]["bbox"][0][1] == -20
    for other in (theirs, scenes.acting_for(None)):
        with pytest.raises(InvalidDocument, match="'bay' of 'scenes' has another owner"):
            await other.put_items("scenes", [item("new"), item("bay")])
        with pytest.raises(InvalidDocument, match="'harbours' has another owner; name another"):
            await other.put_collection(collection("harbours"))
        with pytest.raises(InvalidDocument, match="there is no collection 'harbours'"):
            await other.put_items("harbours", [item("pier", collection="harbours")])
        assert not await other.delete_item("scenes", "bay")
    with pytest.raises(InvalidDocument, match="'paris' of 'scenes' has another owner"):
        await ours.put_items("scenes", [item("paris")])
    assert not await ours.delete_item("scenes", "paris")
    assert await scenes.item("scenes", "new") is None
    await ours.put_items("scenes", [item("bay", days=9)])
    assert await ours.delete_item("scenes", "bay")
