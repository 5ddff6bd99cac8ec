"""What was learnt can be seen, corrected and forgotten."""

import re
from uuid import uuid4

import pytest

from tests.support.gateway import (
    EVENT,
    GOOD,
    HEADER,
    OURS,
    SENIOR,
    THEIRS,
    Stack,
    import_in,
    sheet,
    sign_in,
    token,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

OF = {"import_type": "EVENT_PARTICIPANT"}
MEMORY = "/api/v1/uploads/memory"
CATEGORY = "EVENT_CATEGORY_NAME"


async def test_a_header_is_learnt_corrected_and_forgotten(stack: Stack) -> None:
    header = f"Gruppe {uuid4()}"
    found = {"text": header, **OF}
    async with stack.browser() as anna, stack.browser(token("zoe", THEIRS)) as zoe:
        body = {**OF, "header": header, "ignore": True}
        learnt = await anna.put(f"{MEMORY}/columns", json=body)
        assert learnt.status_code == 200, learnt.text
        assert (learnt.json()["target"], learnt.json()["decided_by"]) == (None, "anna")
        uuid = await import_in(
            anna, "COLUMN_MAPPING", sheet((*HEADER, header), *((*row, "x") for row in GOOD))
        )
        columns = (await anna.get(f"/api/imports/{uuid}/column-mappings")).json()
        assert (columns[-1]["status"], columns[-1]["reason"]) == ("IGNORED", "left out before")

        body = {**OF, "header": header.upper(), "target": "CLUB"}
        assert (await anna.put(f"{MEMORY}/columns", json=body)).status_code == 200
        [one] = (await anna.get(f"{MEMORY}/columns", params=found)).json()["items"]
        assert (one["target"], one["organisation_id"]) == ("CLUB", OURS)
        assert (await zoe.get(f"{MEMORY}/columns", params=found)).json()["items"] == []

        gone = await anna.delete(f"{MEMORY}/columns", params={**OF, "header": header})
        assert gone.status_code == 204
        assert (await anna.get(f"{MEMORY}/columns", params=found)).json()["items"] == []


async def test_a_value_is_learnt_by_the_name_of_its_row(stack: Stack) -> None:
    value = f"Oldies {uuid4()}"
    rows = sheet(HEADER, *GOOD, ("Cleo", "Diaz", "cleo@example.org", value))
    async with stack.browser() as anna:
        body = {**OF, "field": CATEGORY, "value": value, "target_name": "Senior (18+)"}
        assert (await anna.put(f"{MEMORY}/values", json=body)).status_code == 200
        uuid = await import_in(anna, "COMPLETED", rows, autoStart="true")
        cells = (await anna.get(f"/api/imports/{uuid}/cell-mappings")).json()
        [cell] = [each for each in cells if each["sourceValue"] == value]
        assert (cell["targetEntityId"], cell["confidenceScore"]) == (SENIOR, 0.9)
        [one] = (await anna.get(f"{MEMORY}/values", params={"text": value})).json()["items"]
        assert (one["target_name"], one["field"]) == ("Senior (18+)", CATEGORY)
        gone = {**OF, "field": CATEGORY, "value": value}
        assert (await anna.delete(f"{MEMORY}/values", params=gone)).status_code == 204
        assert (await anna.get(f"{MEMORY}/values", params={"text": value})).json()["items"] == []


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("columns", {"header": "x", "target": "NO_FIELD"}, "has no field NO_FIELD"),
        ("columns", {"header": " ", "ignore": True}, "header: is blank"),
        ("columns", {"header": "x"}, "exactly one of target and ignore"),
        ("columns", {"header": "x", "ignore": True, "organisation_id": THEIRS}, "not one of yours"),
        ("values", {"field": "CLUB", "value": "x", "ignore": True}, "refers to rows"),
        (
            "values",
            {"field": "ID_COUNTRY", "value": "x", "target_name": "Wonderland"},
            "there is no Country 'Wonderland'",
        ),
    ],
)
async def test_what_cannot_be_learnt_is_refused(
    stack: Stack, path: str, body: dict[str, object], says: str
) -> None:
    async with stack.browser() as anna:
        refused = await anna.put(f"{MEMORY}/{path}", json={**OF, **body})
    assert refused.status_code == 422
    assert says in refused.text


async def test_viewers_see_and_change_nothing(stack: Stack) -> None:
    async with stack.browser(token("vera", OURS, "viewer")) as vera:
        assert (await vera.get(f"{MEMORY}/values")).status_code == 200
        body = {**OF, "header": "x", "ignore": True}
        assert (await vera.put(f"{MEMORY}/columns", json=body)).status_code == 403


async def test_what_imports_can_belong_to_is_listed(stack: Stack) -> None:
    async with stack.browser() as anna:
        found = (await anna.get("/api/v1/uploads/contexts", params=OF)).json()["items"]
        event = {"id": EVENT, "table": "events", "name": "City Marathon", "organisation_id": OURS}
        assert event in found
        assert {each["organisation_id"] for each in found} == {OURS}
        periods = (
            await anna.get("/api/v1/uploads/contexts", params={"import_type": "MEMBERSHIP"})
        ).json()["items"]
        assert event not in periods


async def test_the_page_corrects_and_forgets(stack: Stack) -> None:
    value = f"Gast {uuid4()}"
    async with stack.browser() as anna:
        body = {**OF, "field": CATEGORY, "value": value, "ignore": True}
        assert (await anna.put(f"{MEMORY}/values", json=body)).status_code == 200
        await sign_in(anna, token())
        address = f"/uploads/memory?show=values&q={value}"
        page = await anna.get(address)
        assert page.status_code == 200 and value in page.text
        [csrf] = set(re.findall(r'name="csrf" value="([^"]+)"', page.text))
        form = {
            "csrf": csrf,
            "show": "values",
            "organisation": str(OURS),
            "key": value,
            "type": OF["import_type"],
            "field": CATEGORY,
        }
        saved = await anna.post(
            "/uploads/memory", data={**form, "do": "save", "target": "Senior (18+)"}
        )
        assert saved.status_code == 303
        assert "Senior (18+)" in (await anna.get(address)).text
        await anna.post("/uploads/memory", data={**form, "do": "forget"})
        assert "Nothing yet" in (await anna.get(address)).text
