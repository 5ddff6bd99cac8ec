"""The review of rows: problems first, corrections in order, nothing written before it ends."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import xlsxwriter

from adapters.files.documents import FileDocuments
from tests.support.gateway import Stack, import_in, sheet, token
from tests.support.spreadsheets.reviews import (
    MAIL,
    ROWS,
    change,
    finished,
    opened,
    reviewed,
    rows,
    settled,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_rows_are_corrected_before_anything_is_written(stack: Stack) -> None:
    async with stack.browser() as anna:
        uuid = await reviewed(anna)
        status = (await anna.get(f"/api/imports/{uuid}")).json()
        assert (status["status"], status["step"]) == ("CELL_MAPPING", "REVIEW")
        view = await settled(anna, uuid)
        assert (view["rows"], view["wrong"]) == (4, 3)
        found = await rows(anna, uuid)
        assert [each["line"] for each in found] == [2, 4, 5, 3]
        assert found[0]["cells"][MAIL - 1]["problem"].startswith("is not a mail address")
        replace = {"kind": "REPLACE", "column": MAIL, "find": "(AT)", "put": "@"}
        seen = await anna.post(f"/api/v1/uploads/{uuid}/review/changes/preview", json=replace)
        assert seen.status_code == 200, seen.text
        effect = seen.json()
        assert (effect["changed_cells"], effect["problems_before"]) == (2, 2)
        assert effect["problems_after"] == 0
        assert effect["examples"][0]["after"] == "rosa@example.org"
        assert (await settled(anna, uuid))["wrong"] == 3
        await change(anna, uuid, **replace)
        await change(anna, uuid, kind="SET", cells=[{"row": 4, "column": 2, "value": "Diaz 2"}])
        assert (await settled(anna, uuid))["wrong"] == 0
        names = {each["line"]: each["cells"][1] for each in await rows(anna, uuid)}
        assert [row for row, cell in names.items() if cell["remark"]] == [4]
        assert names[4]["remark"] == "is a name with digits"
        await change(anna, uuid, kind="SET", cells=[{"row": 4, "column": 2, "value": "Diaz"}])
        await change(anna, uuid, kind="EXCLUDE", rows=[5])
        [left_out] = await rows(anna, uuid, filter="EXCLUDED")
        assert (left_out["line"], left_out["excluded"]) == (5, "anna")
        done = await anna.post(f"/api/imports/{uuid}/cell-mappings/confirm")
        assert done.status_code == 202, done.text
        await finished(anna, uuid)
        summary = (await anna.get(f"/api/imports/{uuid}/results/summary")).json()
        assert (summary["created"], summary["skipped"], summary["error"]) == (3, 1, 0)
        results = (await anna.get(f"/api/imports/{uuid}/results")).json()
        assert all(each["name"] and each["cells"] for each in results)
        [corrected] = results[0]["corrections"]
        assert (corrected["before"], corrected["by"]) == ("rosa(at)example.org", "anna")
        assert corrected["after"] == "rosa@example.org"
        assert results[3]["message"] == "left out in the review by anna"
        trail = (await anna.get(f"/api/v1/uploads/{uuid}/decisions")).json()["items"]
        assert ("row 4, Last name", "corrected", "anna") in [
            (each["subject"], each["decision"], each["by"]) for each in trail
        ]


async def test_a_change_of_another_person_is_named(stack: Stack) -> None:
    async with stack.browser() as anna, stack.browser(token("ben")) as ben:
        uuid = await reviewed(anna)
        seen = (await anna.get(f"/api/v1/uploads/{uuid}/review")).headers["etag"]
        await change(ben, uuid, kind="SET", cells=[{"row": 4, "column": 2, "value": "Diaz"}])
        late = await anna.post(
            f"/api/v1/uploads/{uuid}/review/changes",
            json={"kind": "EXCLUDE", "rows": [4]},
            headers={"if-match": seen},
        )
        assert late.status_code == 412
        assert "ben" in late.json()["detail"] and "row 4, Last name" in late.json()["detail"]
        stale = await anna.post(
            f"/api/imports/{uuid}/cell-mappings/confirm", headers={"if-match": seen}
        )
        assert (stale.status_code, "ben" in stale.json()["detail"]) == (412, True)
        assert (await rows(anna, uuid, filter="EXCLUDED")) == []


async def test_a_name_in_one_column_is_split(stack: Stack) -> None:
    content = sheet(("Whoever", "Email"), ("Ada Lovelace", "ada@example.org"))
    async with stack.browser() as anna:
        uuid = await import_in(anna, "COLUMN_MAPPING", content, review="true")
        address = f"/api/imports/{uuid}/column-mappings/confirm"
        assert (await anna.post(address)).status_code == 406
        confirmed = await anna.post(address, params={"incomplete": "true"})
        assert confirmed.status_code == 202, confirmed.text
        view = await opened(anna, uuid)
        assert view["missing"] == ["FIRST_NAME", "LAST_NAME"]
        refused = await anna.post(f"/api/imports/{uuid}/cell-mappings/confirm")
        assert refused.status_code == 422 and "FIRST_NAME" in refused.json()["detail"]
        split = await change(anna, uuid, kind="SPLIT", column=1, fields=["FIRST_NAME", "LAST_NAME"])
        view = await settled(anna, uuid)
        assert (view["missing"], view["wrong"]) == ([], 0)
        [row] = await rows(anna, uuid)
        assert [each["value"] for each in row["cells"][2:]] == ["Ada", "Lovelace"]
        await change(anna, uuid, kind="UNDO", version=split["version"])
        assert (await opened(anna, uuid))["missing"] == ["FIRST_NAME", "LAST_NAME"]
        listed = (await anna.get(f"/api/v1/uploads/{uuid}/review/changes")).json()["items"]
        assert [(each["operation"]["kind"], each["undone_by"]) for each in listed] == [
            ("UNDO", None),
            ("SPLIT", split["version"] + 1),
        ]


async def test_a_dry_run_is_imported_from_its_review(stack: Stack) -> None:
    async with stack.browser() as anna:
        uuid = await reviewed(anna, *ROWS[1:2], dryRun="true")
        assert (await settled(anna, uuid))["dry_run"] is True
        now = await anna.post(f"/api/v1/uploads/{uuid}/confirm", json={"what": "rows"})
        assert now.status_code == 202, now.text
        await finished(anna, uuid)
        status = (await anna.get(f"/api/imports/{uuid}")).json()
        assert (status["dryRun"], status["successCount"]) == (False, 1)
        assert (await anna.post(f"/api/v1/uploads/{uuid}/undo")).status_code == 202


async def test_a_corrected_export_is_taken_in(stack: Stack, tmp_path: Path) -> None:
    async with stack.browser() as anna:
        uuid = await reviewed(anna)
        exported = await anna.get(f"/api/v1/uploads/{uuid}/review/file")
        assert exported.status_code == 200, exported.text
        path = tmp_path / "review.xlsx"
        path.write_bytes(exported.content)
        with FileDocuments().open_table(path) as table:
            lines = [list(cells) for _, cells in table.rows()]
        assert [line[1] for line in lines[1:]] == [2, 4, 5]
        assert "is not a mail address" in str(lines[1][0])
        lines[1][4] = "rosa@example.org"
        lines[2][3] = "Diaz"
        address = f"/api/v1/uploads/{uuid}/review/file"
        sent = await anna.post(address, files={"file": ("corrected.csv", sheet(*lines))})
        assert sent.status_code == 200, sent.text
        assert sent.json()["changed_cells"] == 2
        assert (await settled(anna, uuid))["wrong"] == 1
        again = await anna.post(address, files={"file": ("corrected.csv", sheet(*lines))})
        assert (again.status_code, again.json()["changed_cells"]) == (200, 0)
        lines[1][1] = 99
        strange = await anna.post(address, files={"file": ("corrected.csv", sheet(*lines))})
        assert strange.status_code == 422 and "no row 99" in strange.json()["detail"]


async def exported_lines(browser: httpx.AsyncClient, uuid: str, path: Path) -> list[list[Any]]:
    """The cells of an export, with its header."""
    exported = await browser.get(f"/api/v1/uploads/{uuid}/review/file")
    assert exported.status_code == 200, exported.text
    path.write_bytes(exported.content)
    with FileDocuments().open_table(path) as table:
        return [list(cells) for _, cells in table.rows()]


async def upload(browser: httpx.AsyncClient, uuid: str, lines: list[list[Any]]) -> httpx.Response:
    return await browser.post(
        f"/api/v1/uploads/{uuid}/review/file", files={"file": ("corrected.csv", sheet(*lines))}
    )


async def test_an_old_export_overwrites_nothing(stack: Stack, tmp_path: Path) -> None:
    async with stack.browser() as anna, stack.browser(token("ben")) as ben:
        uuid = await reviewed(anna)
        lines = await exported_lines(anna, uuid, tmp_path / "review.xlsx")
        cell = {"row": 2, "column": MAIL, "value": "anna.meier@example.org"}
        await change(ben, uuid, kind="SET", cells=[cell])
        lines[2][3] = "Diaz"
        sent = await upload(anna, uuid, lines)
        assert (sent.status_code, sent.json()["changed_cells"]) == (200, 1), sent.text
        values = {each["line"]: each["cells"] for each in await rows(anna, uuid)}
        assert values[2][MAIL - 1]["value"] == "anna.meier@example.org"
        assert values[4][1]["value"] == "Diaz"
        seen = (await anna.get(f"/api/v1/uploads/{uuid}/review")).headers["etag"]
        lines[1][4] = "anna@example.org"
        late = await upload(anna, uuid, lines)
        assert late.status_code == 412, late.text
        assert "row 2, Email: changed by ben" in late.json()["detail"]
        assert (await anna.get(f"/api/v1/uploads/{uuid}/review")).headers["etag"] == seen


async def test_a_file_that_is_not_clear_is_refused(stack: Stack, tmp_path: Path) -> None:
    async with stack.browser() as anna:
        uuid, other = await reviewed(anna), await reviewed(anna)
        header, *lines = await exported_lines(anna, uuid, tmp_path / "review.xlsx")
        renamed = [*header[:4], "E-Mail address", *header[5:]]
        for sent, says in (
            ([header, *lines, lines[0]], "row 2 stands in the file twice"),
            ([renamed, *lines], "had no column 'E-Mail address'"),
            ([[*header[:1], "row", *header[2:]], *lines], "no column 'row (do not change"),
            ([header, [*lines[0][:2], "x" * 2_001, *lines[0][3:]]], "2,001 characters"),
        ):
            answer = await upload(anna, uuid, sent)
            assert answer.status_code == 422, answer.text
            assert says in answer.json()["detail"]
        twice = tmp_path / "twice.xlsx"
        with xlsxwriter.Workbook(twice) as book:
            for some in ([header, *lines[:2]], [header, *lines[2:]], []):
                page = book.add_worksheet()
                for place, cells in enumerate(some):
                    page.write_row(place, 0, cells)
        files = {"file": (twice.name, twice.read_bytes())}
        answer = await anna.post(f"/api/v1/uploads/{uuid}/review/file", files=files)
        assert answer.status_code == 422, answer.text
        assert "several sheets, 'Sheet1', 'Sheet2';" in answer.json()["detail"]
        strange = await upload(anna, other, [header, *lines])
        assert strange.status_code == 422 and "another import" in strange.json()["detail"]


async def test_what_cannot_be_applied_changes_nothing(stack: Stack) -> None:
    async with stack.browser() as anna:
        uuid = await reviewed(anna)
        before = (await anna.get(f"/api/v1/uploads/{uuid}/review")).headers["etag"]
        for operation in (
            {"kind": "REPLACE", "column": 99, "find": "x"},
            {"kind": "SPLIT", "column": 1, "fields": ["FIRST_NAME", "NO_FIELD"]},
            {"kind": "UNDO", "version": 77},
            {"kind": "SET", "cells": [{"row": 77, "column": 1, "value": "x"}]},
            {"kind": "SET", "cells": [{"row": r, "column": 1, "value": "x"} for r in (2, 77)]},
            {"kind": "EXCLUDE", "rows": [2, 77]},
            {"kind": "REPLACE", "column": 1, "find": "x", "more": 1},
        ):
            answer = await anna.post(f"/api/v1/uploads/{uuid}/review/changes", json=operation)
            assert answer.status_code == 422, (operation, answer.text)
        assert (await anna.get(f"/api/v1/uploads/{uuid}/review")).headers["etag"] == before
