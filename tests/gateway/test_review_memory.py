"""Changes of columns in reviews, remembered for the next file."""

import re
from typing import Any

import httpx
import pytest

from tests.support.gateway import (
    HEADER,
    TAUGHT,
    TAUGHT_EVENT,
    THEIRS,
    Stack,
    import_in,
    sheet,
    sign_in,
    token,
)
from tests.support.spreadsheets.reviews import (
    MAIL,
    ROWS,
    change,
    finished,
    opened,
    reviewed,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONTEXT = {"contextId": str(TAUGHT_EVENT)}
MEMORY = "/api/v1/uploads/memory/changes"


async def learnt_changes(browser: httpx.AsyncClient) -> list[dict[str, Any]]:
    return (await browser.get(MEMORY, params={"limit": 200})).json()["items"]


async def test_changes_of_columns_are_remembered_for_the_next_file(stack: Stack) -> None:
    async with stack.browser(token("anna", TAUGHT)) as anna:
        uuid = await reviewed(anna, **CONTEXT)
        operation = {"kind": "REPLACE", "column": MAIL, "find": "(at)", "put": "@"}
        await change(anna, uuid, **operation)
        assert (await anna.post(f"/api/imports/{uuid}/start")).status_code == 202
        await finished(anna, uuid)
        following = await reviewed(anna, **CONTEXT)
        offered = (await anna.get(f"/api/v1/uploads/{following}/review/suggestions")).json()[
            "items"
        ]
        [again] = [each for each in offered if each["operation"]["find"] == "(at)"]
        assert again["headers"] == ["Email"]
        await change(anna, following, **again["operation"])
        left = (await anna.get(f"/api/v1/uploads/{following}/review/suggestions")).json()["items"]
        assert again["operation"] not in [each["operation"] for each in left]
        learnt = await learnt_changes(anna)
        [one] = [each for each in learnt if each["operation"].get("find") == "(at)"]
        assert (one["headers"], one["decided_by"]) == (["Email"], "anna")
        await sign_in(anna, token("anna", TAUGHT))
        page = await anna.get("/uploads/memory?show=changes")
        assert page.status_code == 200 and one["key"] in page.text
        assert "“(at)” by “@”" in page.text
        named = {"import_type": one["import_type"], "key": one["key"]}
        async with stack.browser(token("zoe", THEIRS)) as zoe:
            assert await learnt_changes(zoe) == []
            assert (await zoe.delete(MEMORY, params=named)).status_code == 204
        assert one in await learnt_changes(anna)
        [csrf] = set(re.findall(r'name="csrf" value="([^"]+)"', page.text))
        form = {
            "csrf": csrf,
            "show": "changes",
            "organisation": str(TAUGHT),
            "type": one["import_type"],
            "key": one["key"],
        }
        assert (await anna.post("/uploads/memory", data=form)).status_code == 303
        assert one not in await learnt_changes(anna)


async def test_a_constant_without_a_column_is_remembered_for_files_of_the_same_headers(
    stack: Stack,
) -> None:
    async def offered(uuid: str) -> list[dict[str, Any]]:
        answer = await anna.get(f"/api/v1/uploads/{uuid}/review/suggestions")
        return [each for each in answer.json()["items"] if each["operation"].get("value") == "Graz"]

    shuffled = tuple(reversed(HEADER))
    async with stack.browser(token("anna", TAUGHT)) as anna:
        uuid = await reviewed(anna, *ROWS[1:2], **CONTEXT)
        await change(anna, uuid, kind="CONSTANT", field="CITY", value="Graz")
        assert (await anna.post(f"/api/imports/{uuid}/start")).status_code == 202
        await finished(anna, uuid)
        [again] = await offered(await reviewed(anna, **CONTEXT))
        assert (again["headers"], again["operation"]["field"]) == ([], "CITY")
        assert again["why"] == "done in an earlier file with the same headers"
        same = sheet(shuffled, tuple(reversed(ROWS[1])))
        more = sheet((*HEADER, "Notes"), (*ROWS[1], "fast"))
        for content, found in ((same, 1), (more, 0)):
            other = await import_in(anna, "COLUMN_MAPPING", content, review="true", **CONTEXT)
            for step in ("column-mappings", "cell-mappings"):
                await anna.post(f"/api/imports/{other}/{step}/confirm")
            await opened(anna, other)
            assert len(await offered(other)) == found
        learnt = await learnt_changes(anna)
        [one] = [each for each in learnt if each["operation"].get("value") == "Graz"]
        assert len(one["file_headers"]) == len(HEADER)
