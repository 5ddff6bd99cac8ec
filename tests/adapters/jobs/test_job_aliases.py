"""A foreign id names one job, however many ask."""

import asyncio

from activities.jobs.ports import JobAlias
from activities.jobs.store import SqlJobAliases
from adapters.database.engine import Database


async def test_an_alias_is_claimed_once(database: Database) -> None:
    aliases = SqlJobAliases(database)
    assert await aliases.get("abc") is None
    wanted = [JobAlias("abc", str(number), f"job{number}") for number in range(5)]
    kept = set(await asyncio.gather(*map(aliases.claim, wanted)))
    assert len(kept) == 1
    (first,) = kept
    assert await aliases.get("abc") == first


async def test_an_alias_moves_only_for_the_same_content(database: Database) -> None:
    aliases = SqlJobAliases(database)
    await aliases.claim(JobAlias("abc", "1", "old"))
    await aliases.move(JobAlias("abc", "2", "other"))
    assert await aliases.get("abc") == JobAlias("abc", "1", "old")
    await aliases.move(JobAlias("abc", "1", "new"))
    assert await aliases.get("abc") == JobAlias("abc", "1", "new")


async def test_an_alias_is_released_unless_it_has_moved(database: Database) -> None:
    aliases = SqlJobAliases(database)
    kept = await aliases.claim(JobAlias("abc", "1", "old"))
    await aliases.release(JobAlias("abc", "1", "other"))
    assert await aliases.get("abc") == kept
    await aliases.release(kept)
    assert await aliases.get("abc") is None
