"""Runs of all pipelines over `/api/v1/runs`."""

import pytest

from tests.support.gateway import Stack, import_in, token

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_people_see_the_runs_of_their_organisations(stack: Stack) -> None:
    async with stack.browser(token("rose")) as rose:
        mine = [await import_in(rose, "COLUMN_MAPPING", filename=f"{n}.csv") for n in range(3)]
        page = (await rose.get("/api/v1/runs", params={"owner": "rose", "limit": 2})).json()
        assert [each["key"] for each in page["items"]] == mine[:0:-1]
        rest = {"owner": "rose", "limit": 2, "cursor": page["next"]}
        last = (await rose.get("/api/v1/runs", params=rest)).json()
        assert ([each["key"] for each in last["items"]], last["next"]) == (mine[:1], None)
        found = (await rose.get("/api/v1/runs", params={"text": "1.CSV", "owner": "rose"})).json()
        [run] = found["items"]
        assert (run["title"], run["pipeline"]) == ("1.csv", "spreadsheets")
        one = (await rose.get(f"/api/v1/runs/{run['id']}")).json()
        assert one["answers"] == ["retry", "cancel", "report"]
        for each in mine:
            await rose.delete(f"/api/imports/{each}")
    async with stack.browser(token("eve", 99)) as eve:
        assert (await eve.get("/api/v1/runs")).json()["items"] == []
        assert (await eve.get(f"/api/v1/runs/{run['id']}")).status_code == 404
