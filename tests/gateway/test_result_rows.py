"""The rows behind outcomes: names and cells, as long as they are kept."""

from datetime import UTC, datetime

import pytest

from tests.support.gateway import HEADER, Stack, import_in, sheet, sign_in
from workers.spreadsheets import queries
from workers.spreadsheets.resources import spreadsheet_resources

pytestmark = pytest.mark.asyncio(loop_scope="session")

PEOPLE = [(f"First{n}", f"Last{n}", f"p{n}@rows.example.org", "Senior (18+)") for n in range(1_500)]
WRONG = ("", "", "nobody(at)rows", "Senior (18+)")


async def test_rows_far_down_a_file_have_their_cells(stack: Stack) -> None:
    async with stack.browser() as anna:
        rows = sheet(HEADER, *PEOPLE, WRONG)
        uuid = await import_in(anna, "COMPLETED", rows, autoStart="true")
        url = f"/api/imports/{uuid}/results"
        page = (await anna.get(url, params={"page": 29, "size": 50})).json()
        assert [each["name"] for each in page[:2]] == ["First1450 Last1450", "First1451 Last1451"]
        [wrong] = (await anna.get(url, params={"outcome": "ERROR"})).json()
        assert wrong["name"] == "nobody(at)rows"
        assert {each["column"] for each in wrong["problems"]} >= {"Email"}

        await sign_in(anna, anna.headers["authorization"].removeprefix("Bearer "))
        shown = (await anna.get(f"/uploads/{uuid}?outcome=ERROR")).text
        assert "“nobody(at)rows”" in shown

        store = spreadsheet_resources(stack.resources.database).store
        assert await store.purge(uuid, datetime.now(UTC))
        assert (await anna.get(url)).status_code == 410
        assert "rows with their cells" in (await anna.get(f"/uploads/{uuid}")).text


async def test_rows_whose_file_was_removed_are_reported(stack: Stack) -> None:
    async with stack.browser() as anna:
        uuid = await import_in(anna, "COMPLETED", sheet(HEADER, PEOPLE[0]), autoStart="true")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(queries, "staged_name", lambda uuid, layout: "spreadsheets/gone")
            [row] = (await anna.get(f"/api/imports/{uuid}/results")).json()
            await sign_in(anna, anna.headers["authorization"].removeprefix("Bearer "))
            page = (await anna.get(f"/uploads/{uuid}")).text
    assert (row["name"], row["cells"]) == (None, [])
    assert "No longer kept" in page
