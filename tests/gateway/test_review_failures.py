"""Reviews whose steps fail, and changes that are lost on their way."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from html import unescape
from typing import Any

import pytest
from sqlalchemy import insert, select

from adapters.database.models.spreadsheets import (
    spreadsheet_files,
    spreadsheet_imports,
    spreadsheet_reviews,
)
from tests.support.gateway import HEADER, Stack, import_in, sheet, sign_in, token
from tests.support.spreadsheets.reviews import ROWS, change, opened, reviewed, rows, settled
from tests.support.waiting import eventually
from workers.spreadsheets.resources import spreadsheet_resources
from workflows.shared.contracts import BlobRef
from workflows.spreadsheets.mappings import ReviewCounts
from workflows.spreadsheets.reviews import OPERATION, ReviewOperation

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_rows_that_cannot_be_checked_are_not_said_to_be_checked_still(stack: Stack) -> None:
    async with stack.browser() as anna:
        uuid = await reviewed(anna)
        blobs, name = stack.resources.blobs, await staged_rows(stack, uuid)
        kept = b"".join([piece async for piece in blobs.read(name)])
        await blobs.delete(name)
        await change(anna, uuid, kind="EXCLUDE", rows=[5])
        view: dict[str, Any] = {}

        async def has_failed() -> bool:
            view.update((await anna.get(f"/api/v1/uploads/{uuid}/review")).json())
            return view["check_failure"] is not None

        await eventually(has_failed)
        assert (view["is_checked"], view["is_open"]) == (False, True)
        await sign_in(anna, token())
        page = (await anna.get(f"/uploads/{uuid}")).text
        assert "still being compared" not in page
        assert "could not be compared" in page and view["check_failure"] in unescape(page)
        await blobs.write(name, pieces(kept))
        again = await anna.post(f"/api/v1/runs/spreadsheet/{uuid}/retry")
        assert again.status_code == 200, again.text
        assert (await settled(anna, uuid))["check_failure"] is None
        assert "could not be compared" not in (await anna.get(f"/uploads/{uuid}")).text
        useless = await anna.post(f"/api/v1/runs/spreadsheet/{uuid}/retry")
        assert useless.status_code == 409, useless.text


async def staged_rows(stack: Stack, uuid: str) -> str:
    """Name of the blob that rows of an import are checked from."""
    imports, files = spreadsheet_imports, spreadsheet_files
    query = select(files.c.blob).join(imports, imports.c.id == files.c.import_id)
    async with stack.resources.database.reading() as connection:
        found = await connection.execute(query.where(imports.c.uuid == uuid))
        [name] = [BlobRef.model_validate_json(each).name for each in found.scalars()]
    return name


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def test_a_review_that_could_not_be_opened_says_why(stack: Stack) -> None:
    async with stack.browser() as anna:
        content = sheet(HEADER, *ROWS)
        uuid = await import_in(anna, "COLUMN_MAPPING", content, review="true")
        confirmed = await anna.post(f"/api/imports/{uuid}/column-mappings/confirm")
        assert confirmed.status_code == 202, confirmed.text
        # As after a check that failed half-way: its rows are stored, and it parks.
        async with stack.resources.database.transaction() as connection:
            [own] = await connection.execute(
                select(spreadsheet_imports.c.id).where(spreadsheet_imports.c.uuid == uuid)
            )
            values = ReviewCounts(rows=4).model_dump()
            new = insert(spreadsheet_reviews).values(import_id=own.id, is_open=True, **values)
            await connection.execute(new)
        blobs, name = stack.resources.blobs, await staged_rows(stack, uuid)
        kept = b"".join([piece async for piece in blobs.read(name)])
        await blobs.delete(name)
        sent = await anna.post(f"/api/imports/{uuid}/cell-mappings/confirm")
        assert sent.status_code == 202, sent.text
        view = (await anna.get(f"/api/v1/uploads/{uuid}/review")).json()
        assert (view["is_open"], view["is_checked"]) == (False, False)
        assert "upload the file again" in view["check_failure"]
        leave = {"kind": "EXCLUDE", "rows": [5]}
        refused = await anna.post(f"/api/v1/uploads/{uuid}/review/changes", json=leave)
        assert refused.status_code == 409
        assert "the import has stopped, check the rows" in refused.json()["detail"]
        await blobs.write(name, pieces(kept))
        retried = await anna.post(f"/api/v1/runs/spreadsheet/{uuid}/retry")
        assert retried.status_code == 200, retried.text
        assert (await opened(anna, uuid))["check_failure"] is None


async def test_a_change_that_a_gateway_lost_is_found_again_and_made_once(stack: Stack) -> None:
    async with stack.browser() as anna, stack.browser(token("ben")) as ben:
        uuid = await reviewed(anna)
        address = f"/api/v1/uploads/{uuid}/review/changes"
        replace = {"kind": "REPLACE", "column": 2, "find": "Maier", "put": "Maier-Maier"}
        proposed = ReviewOperation(
            id=0,
            version=0,
            operation=OPERATION.validate_python(replace),
            by="anna",
            at=datetime.now(UTC),
        )
        reviews = spreadsheet_resources(stack.resources.database).store.reviews
        lost = await reviews.propose(uuid, proposed, "first")
        assert lost == await reviews.propose(uuid, proposed, "first")
        once = {"headers": {"idempotency-key": "first"}, "json": replace}
        first = await anna.post(address, **once)
        assert (first.status_code, first.json()["changed_cells"]) == (200, 1), first.text
        assert lost is not None
        found = await reviews.operation(uuid, lost)
        assert found is not None and found.operation.version == first.json()["version"]
        again = await anna.post(address, **once)
        assert (again.status_code, again.json()) == (200, first.json())
        other = {**replace, "put": "Meier"}
        for who, body in ((anna, other), (ben, replace)):
            refused = await who.post(address, headers=once["headers"], json=body)
            assert refused.status_code == 422, refused.text
            assert "another change" in refused.json()["detail"]
        names = {each["line"]: each["cells"][1] for each in await rows(anna, uuid)}
        assert names[2]["value"] == "Maier-Maier"
        await change(anna, uuid, kind="UNDO", version=first.json()["version"])
        late = await anna.post(address, **once)
        assert (late.status_code, "taken back since" in late.json()["detail"]) == (422, True)
        assert len((await anna.get(address)).json()["items"]) == 2
