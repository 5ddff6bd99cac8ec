"""Pages of a search hold every item once, in every order."""

from collections.abc import Sequence
from typing import Any

import pytest

from activities.jobs.catalogue import Catalogue
from activities.jobs.ports import CatalogueQuery
from tests.support.jobs.stac import collection, item
from workflows.shared.errors import RuleViolation

GROUND = [9.0, 80.0, 9.0, 100.0, None, 80.0]
Name = tuple[str, str]


def names(items: Sequence[Any]) -> list[Name]:
    return [(each["collection"], each["id"]) for each in items]


@pytest.fixture
async def twins(catalogue: Catalogue) -> Catalogue:
    """Two collections with the same ids, many of one moment and one resolution."""
    for name in ("one", "two"):
        await catalogue.put_collection(collection(name))
        await catalogue.put_items(
            name,
            [
                item(f"i{at}", collection=name, days=at // 3, gsd=ground)
                for at, ground in enumerate(GROUND)
            ],
        )
    return catalogue


async def pages(catalogue: Catalogue, query: CatalogueQuery) -> list[list[Name]]:
    """All pages of a search, by their tokens."""
    found: list[list[Name]] = []
    token = None
    while True:
        page = await catalogue.search(
            CatalogueQuery(sort=query.sort, limit=query.limit, token=token)
        )
        found.append(names(page.items))
        token = page.next
        if token is None or len(found) > 20:
            return found


@pytest.mark.parametrize(
    "order",
    [
        (),
        (("datetime", False),),
        (("end_datetime", True),),
        (("gsd", False),),
        (("gsd", True),),
        (("id", False),),
        (("id", True), ("datetime", False)),
        (("collection", True), ("gsd", False)),
        (("created", False),),
    ],
)
async def test_no_item_is_lost_or_doubled_between_pages(
    twins: Catalogue, order: Sequence[tuple[str, bool]]
) -> None:
    [whole] = await pages(twins, CatalogueQuery(sort=order, limit=100))
    assert len(set(whole)) == len(whole) == 12
    for limit in (1, 5):
        found = await pages(twins, CatalogueQuery(sort=order, limit=limit))
        assert [name for page in found for name in page] == whole


async def test_numbers_are_put_in_the_order_of_numbers(twins: Catalogue) -> None:
    rising = await twins.search(CatalogueQuery(sort=(("gsd", False),), limit=100))
    falling = await twins.search(CatalogueQuery(sort=(("gsd", True),), limit=100))
    ground = [each["properties"].get("gsd") for each in rising.items]
    assert ground == [9.0] * 4 + [80.0] * 4 + [100.0] * 2 + [None] * 2
    assert [each["properties"].get("gsd") for each in falling.items] == ground[::-1]
    assert names(rising.items)[:4] == [("one", "i0"), ("one", "i2"), ("two", "i0"), ("two", "i2")]
    assert names(falling.items)[:2] == [("one", "i4"), ("two", "i4")]


@pytest.mark.parametrize("order", [(), (("gsd", False),), (("id", False),)])
async def test_items_that_come_and_go_move_no_other(
    twins: Catalogue, order: Sequence[tuple[str, bool]]
) -> None:
    [whole] = await pages(twins, CatalogueQuery(sort=order, limit=100))
    first = await twins.search(CatalogueQuery(sort=order, limit=4))
    await twins.put_items("one", [item("h", collection="one", days=90, gsd=1)])
    await twins.delete_item(*whole[0])
    rest = await twins.search(CatalogueQuery(sort=order, limit=100, token=first.next))
    assert names(rest.items) == whole[4:]
    assert rest.previous is not None
    back = await twins.search(CatalogueQuery(sort=order, limit=3, token=rest.previous))
    assert names(back.items) == whole[1:4]


async def test_a_token_of_another_order_is_refused(twins: Catalogue) -> None:
    by_ground, by_time = (("gsd", False),), (("created", False),)
    first = await twins.search(CatalogueQuery(sort=by_ground, limit=4))
    for order in ((), by_time):
        with pytest.raises(RuleViolation, match="token"):
            await twins.search(CatalogueQuery(sort=order, limit=4, token=first.next))
