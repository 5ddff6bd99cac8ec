"""Uploads over `/api/v1/uploads`: the same imports as under `/api/imports`, in the one style."""

from typing import Any

import pytest

from tests.support.gateway import (
    EVENT,
    GOOD,
    HEADER,
    SENIOR,
    Stack,
    import_in,
    sheet,
    token,
    until,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

UPLOADS = "/api/v1/uploads"
FORM = {"import_type": "EVENT_PARTICIPANT", "context_id": str(EVENT)}
# What is decided about these headers concerns no other test.
STRANGE = ("First name", "Familiennahme?", "Email", "Category", "Length of the skis")
ODD = (*GOOD, ("Una", "Diaz", "una@uploads.example.org", "Toddlers of una"))


async def test_the_whole_way(stack: Stack) -> None:
    rows = sheet(STRANGE, *((*row, 42) for row in ODD))
    async with stack.browser(token("una")) as una:
        files = {"file": ("runners.csv", rows)}
        once: dict[str, Any] = {"data": FORM, "headers": {"idempotency-key": "una-1"}}
        created = await una.post(UPLOADS, files=files, **once)
        assert created.status_code == 201, created.text
        made = created.json()
        url = f"{UPLOADS}/{made['uuid']}"
        assert created.headers["location"] == url
        assert (made["id"], made["by"]) == (f"spreadsheet/{made['uuid']}", "una")
        again = await una.post(UPLOADS, files=files, **once)
        assert (again.status_code, again.json()["uuid"]) == (200, made["uuid"])
        await until(una, made["uuid"], "COLUMN_MAPPING")

        listed = await una.get(f"{url}/columns")
        columns = {each["header"]: each for each in listed.json()["items"]}
        assert columns["First name"]["status"] == "AUTO_MATCHED"
        assert columns["Length of the skis"]["target"] is None
        refused = await una.post(f"{url}/confirm", json={"what": "columns"})
        assert refused.status_code == 409, refused.text
        assert refused.json()["missing_fields"] == ["LAST_NAME"]
        assert refused.json()["type"] == "urn:docflow:problem:still-open"
        decisions = [
            {"id": columns["Length of the skis"]["id"], "ignore": True},
            {"id": columns["Familiennahme?"]["id"], "target": "LAST_NAME"},
        ]
        seen = {"if-match": listed.headers["etag"]}
        decided = await una.patch(f"{url}/columns", json={"decisions": decisions}, headers=seen)
        assert (decided.status_code, decided.json()["missing_fields"]) == (200, [])
        late = await una.patch(f"{url}/columns", json={"decisions": decisions}, headers=seen)
        assert (late.status_code, late.headers["etag"]) == (412, decided.headers["etag"])
        confirmed = await una.post(f"{url}/confirm", json={"what": "columns"})
        assert (confirmed.status_code, confirmed.json()["state"]) == (202, "CELL_MAPPING")

        asked = {"status": "UNRESOLVED", "text": "of una"}
        [open_value] = (await una.get(f"{url}/values", params=asked)).json()["items"]
        assert (open_value["value"], open_value["rows"]) == ("Toddlers of una", 1)
        refused = await una.post(f"{url}/confirm", json={"what": "values"})
        assert (refused.status_code, refused.json()["open_values"]) == (409, 1)
        assert refused.json()["first_open_values"][0]["value"] == "Toddlers of una"
        wanted = {"field": "EVENT_CATEGORY_NAME", "text": "sen"}
        [senior, *_] = (await una.get(f"{url}/candidates", params=wanted)).json()["items"]
        assert senior == {"id": SENIOR, "name": "Senior (18+)"}
        decision = {"id": open_value["id"], "target_id": SENIOR}
        decided = await una.patch(f"{url}/values", json={"decisions": [decision]})
        assert (decided.status_code, decided.json()["open_values"]) == (200, 0)
        assert (await una.post(f"{url}/confirm", json={"what": "values"})).status_code == 202
        await until(una, made["uuid"], "COMPLETED")

        shown = (await una.get(url)).json()
        assert (shown["state"], shown["total"], shown["success_count"]) == ("COMPLETED", 3, 3)
        assert (await una.get(f"{url}/summary")).json()["total"] == 3
        kinds = [each["kind"] for each in (await una.get(f"{url}/decisions")).json()["items"]]
        assert {"column", "value", "confirm"} <= set(kinds)


async def test_a_list_is_read_on_by_its_cursor(stack: Stack) -> None:
    async with stack.browser(token("ulf")) as ulf:
        made = [await import_in(ulf, "COLUMN_MAPPING", filename=f"ulf-{n}.csv") for n in range(3)]
        query: dict[str, Any] = {"by": "ulf", "limit": 2}
        first = (await ulf.get(UPLOADS, params=query)).json()
        second = (await ulf.get(UPLOADS, params={**query, "cursor": first["next"]})).json()
        found = [each["uuid"] for each in (*first["items"], *second["items"])]
        assert (found, second["next"]) == (made[::-1], None)
        assert {each["context_name"] for each in first["items"]} == {"City Marathon"}
        for further, names in (
            ({"text": "ULF-1"}, ["ulf-1.csv"]),
            ({"state": "COMPLETED"}, []),
            ({"organisation_id": 2}, []),
            ({"import_type": "RESULT"}, []),
        ):
            answer = (await ulf.get(UPLOADS, params={"by": "ulf", **further})).json()
            assert [each["filename"] for each in answer["items"]] == names, further
        for wrong in ("x", "-1", "2026"):
            refused = await ulf.get(f"{UPLOADS}/{made[0]}/decisions", params={"cursor": wrong})
            assert refused.status_code == (200 if wrong == "2026" else 422), wrong


async def test_pages_of_any_size_hold_each_row_once(stack: Stack) -> None:
    rows = [(f"P{n}", "Page", f"p{n}@pages.example.org", "Senior (18+)") for n in range(7)]
    async with stack.browser(token("uta")) as uta:
        uuid = await import_in(uta, "COMPLETED", sheet(HEADER, *rows), autoStart="true")
        found: list[int] = []
        cursor: str | None = None
        for limit in (3, 2, 4, 1, 1):
            query: dict[str, Any] = {"limit": limit, **({"cursor": cursor} if cursor else {})}
            page = (await uta.get(f"{UPLOADS}/{uuid}/results", params=query)).json()
            assert (page["total"], len(page["items"]) <= limit) == (7, True)
            found += [each["line"] for each in page["items"]]
            cursor = page["next"]
            if cursor is None:
                break
        assert (found, cursor) == (list(range(2, 9)), None)


async def test_both_faces_show_the_same_import(stack: Stack) -> None:
    names = {
        "uuid": "identifier",
        "state": "status",
        "filename": "originalFilename",
        "by": "createdBy",
        "total": "totalRows",
        "parked": "parkedRows",
        "undo_state": "undoStatus",
        "id": "workflowId",
        "import_type": "importType",
        "created_at": "createdAt",
        "success_count": "successCount",
    }
    async with stack.browser() as anna:
        uuid = await import_in(anna, "COMPLETED", autoStart="true")
        one = (await anna.get(f"{UPLOADS}/{uuid}")).json()
        other = (await anna.get(f"/api/imports/{uuid}")).json()
        assert {name: one[name] for name in names} == {
            name: other[alias] for name, alias in names.items()
        }
        assert one["counts"] == other["counts"]
        assert not [name for name in one if name != name.lower()]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"importType": "RESULT"}, "importType: Extra inputs are not permitted"),
        ({"import_type": "PEOPLE"}, "import_type: there is no import type PEOPLE"),
        ({"import_type": "../x"}, "import_type: there is no import type ../x; there are"),
        ({"import_type": "membershp"}, "type membershp; did you mean 'MEMBERSHIP'? there are"),
        ({"context_id": "999999"}, "context_id: there is no Event 999999"),
        ({"organisation_id": "2"}, "organisation_id: 2 is not one of your organisations"),
        ({"header_line": "0"}, "header_line"),
    ],
)
async def test_a_refused_form_names_the_field_as_sent(
    stack: Stack, fields: dict[str, str], said: str
) -> None:
    async with stack.browser() as anna:
        files = {"file": ("runners.csv", sheet(HEADER, *GOOD))}
        refused = await anna.post(UPLOADS, data={**FORM, **fields}, files=files)
    assert (refused.status_code, said in refused.json()["detail"]) == (422, True), refused.text


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "set exactly one of layout, rows and assignee"),
        ({"layout": {}, "assignee": {"to": "ben"}}, "set exactly one of"),
        ({"layout": {"headerLine": 3}}, "Extra inputs"),
        ({"state": "COMPLETED"}, "Extra inputs"),
    ],
)
async def test_one_request_changes_one_thing(stack: Stack, body: object, said: str) -> None:
    async with stack.browser() as anna:
        uuid = await import_in(anna, "COLUMN_MAPPING")
        refused = await anna.patch(f"{UPLOADS}/{uuid}", json=body)
    assert (refused.status_code, said in refused.text) == (422, True), refused.text


async def test_two_people_do_not_reassign_an_upload_at_once(stack: Stack) -> None:
    async with stack.browser() as anna, stack.browser(token("ben")) as ben:
        uuid = await import_in(anna, "COLUMN_MAPPING")
        url = f"{UPLOADS}/{uuid}"
        seen = {"if-match": (await anna.get(url)).headers["etag"]}
        decision = {"decisions": [{"id": 3, "confirm": True}]}
        assert (await ben.patch(f"{url}/columns", json=decision, headers=seen)).is_success
        body = {"assignee": {"to": "cleo"}}
        assert (await anna.patch(url, json=body, headers=seen)).status_code == 412
        assert (await anna.patch(url, json=body)).status_code == 200
        assert (await anna.get(url)).json()["assignee"] == "cleo"


async def test_changes_have_an_entry_in_the_audit(stack: Stack) -> None:
    async with stack.browser(token("udo")) as udo:
        files = {"file": ("runners.csv", sheet(HEADER, *GOOD))}
        made = (await udo.post(UPLOADS, data=FORM, files=files)).json()
        url = f"{UPLOADS}/{made['uuid']}"
        await until(udo, made["uuid"], "COLUMN_MAPPING")
        await udo.patch(url, json={"assignee": {"to": "ben"}})
        run = f"/api/v1/runs/{made['id']}"
        cancelled = await udo.post(f"{run}/cancel", json={"reason": "wrong file"})
        assert cancelled.status_code == 200, cancelled.text
        assert (await udo.get(url)).json()["state"] == "CANCELLED"
    async with stack.browser(token("alma", 1, "admin")) as admin:
        found = (await admin.get("/api/v1/audit", params={"who": "udo"})).json()["items"]
    assert [(each["action"], each["object"], each["reason"]) for each in found] == [
        ("answerRun", made["id"], "wrong file"),
        ("changeUpload", made["uuid"], None),
        ("createUpload", made["uuid"], None),
    ]
