"""An import over HTTP, from its upload to its undo."""

import errno
import logging
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from adapters.files.tables.source import open_table
from tests.support.gateway import (
    EVENT,
    GOOD,
    HEADER,
    JUNIOR,
    ODD,
    SENIOR,
    STRANGE,
    THEIR_EVENT,
    Stack,
    import_in,
    sheet,
    token,
    until,
    upload,
)
from tests.support.waiting import eventually
from workers.spreadsheets.resources import spreadsheet_resources

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_whole_way(stack: Stack) -> None:
    rows = sheet(STRANGE, *((*row, 42) for row in ODD))
    async with stack.browser() as anna:
        created = await upload(anna, rows)
        assert created.status_code == 201
        body = created.json()
        url = f"/api/imports/{body['identifier']}"
        assert created.headers["location"] == url
        assert body["importType"] == "EVENT_PARTICIPANT"
        assert body["originalFilename"] == "registrations.csv"
        assert body["createdBy"] == "anna"
        await until(anna, body["identifier"], "COLUMN_MAPPING")

        columns = await anna.get(f"{url}/column-mappings")
        by_header = {each["sourceHeader"]: each for each in columns.json()}
        assert by_header["First name"]["status"] == "AUTO_MATCHED"
        assert by_header["First name"]["confidenceScore"] == 1.0
        assert by_header["First name"]["samples"][0] == "Anna"
        assert by_header["Shoe size"]["status"] == "UNRESOLVED"
        assert by_header["Shoe size"]["targetField"] is None

        too_early = await anna.post(f"{url}/column-mappings/confirm")
        assert too_early.status_code == 406
        assert too_early.json()["missingFields"] == ["LAST_NAME"]
        assert too_early.json()["saved"] is False

        version = columns.headers["etag"]
        shoe = {"id": by_header["Shoe size"]["id"], "ignore": True}
        still_open = await anna.put(
            f"{url}/column-mappings", json=[shoe], headers={"if-match": version}
        )
        assert still_open.status_code == 406
        assert still_open.json()["saved"] is True
        assert still_open.json()["missingFields"] == ["LAST_NAME"]
        assert still_open.headers["etag"] != version
        saved = {each["id"]: each for each in (await anna.get(f"{url}/column-mappings")).json()}
        assert saved[shoe["id"]]["status"] == "IGNORED"

        name = {"id": by_header["Nachnahme?"]["id"], "targetField": "LAST_NAME"}
        done = await anna.put(
            f"{url}/column-mappings",
            json=[name],
            headers={"if-match": still_open.headers["etag"]},
        )
        assert done.status_code == 202
        assert done.json()["missingFields"] == []

        confirmed = await anna.post(f"{url}/column-mappings/confirm")
        assert confirmed.status_code == 202
        assert confirmed.json()["status"] == "CELL_MAPPING"
        cells = {each["sourceValue"]: each for each in confirmed.json()["cellMappings"]}
        assert cells["Junior (U18)"]["status"] == "AUTO_MATCHED"
        assert cells["Kids"]["status"] == "UNRESOLVED"
        assert cells["Kids"]["rowCount"] == 1

        refused = await anna.post(f"{url}/cell-mappings/confirm")
        assert refused.status_code == 406
        assert refused.json()["firstOpenValues"][0]["sourceValue"] == "Kids"

        candidates = await anna.get(
            f"{url}/cell-mappings/candidates",
            params={"targetField": "EVENT_CATEGORY_NAME", "query": "sen"},
        )
        assert candidates.json()[0] == {"id": SENIOR, "displayName": "Senior (18+)"}

        kids = {"id": cells["Kids"]["id"], "targetEntityId": SENIOR}
        assert (await anna.put(f"{url}/cell-mappings", json=[kids])).status_code == 202
        assert (await anna.post(f"{url}/cell-mappings/confirm")).status_code == 202

        status = await until(anna, body["identifier"], "COMPLETED")
        assert (status["processedRows"], status["successCount"]) == (3, 3)
        assert status["progressPercent"] == 100
        assert status["totalRows"] == 3

        uuid = body["identifier"]
        trail = (await anna.get(f"/api/v1/uploads/{uuid}/decisions")).json()["items"]
        said = {(each["kind"], each["subject"]): each["decision"] for each in trail}
        assert said["column", "Nachnahme?"] == "LAST_NAME"
        assert {each["by"] for each in trail} == {"anna"}


async def no_room(name: str, target: Path) -> None:
    target.write_bytes(b"half of it")
    raise OSError(errno.ENOSPC, "No space left on device")


async def test_results_report_and_undo(
    stack: Stack, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "adapters.log_notifications")
    bad = ("Dora", "Novak", "dora at example.org", "Senior (18+)")
    async with stack.browser(token("ria")) as ria:
        uuid = await import_in(
            ria, "COMPLETED", sheet(HEADER, *GOOD, bad), filename="läufer.csv", autoStart="true"
        )
        url = f"/api/imports/{uuid}"
        summary = (await ria.get(f"{url}/results/summary")).json()
        assert (summary["total"], summary["error"]) == (3, 1)

        errors = await ria.get(f"{url}/results", params={"outcome": "ERROR"})
        assert errors.headers["x-total-count"] == "1"
        assert errors.json()[0]["rowNumber"] == 4
        assert errors.json()[0]["outcome"] == "ERROR"
        assert errors.json()[0]["message"]

        with pytest.MonkeyPatch.context() as full:
            full.setattr(stack.resources.blobs, "download", no_room)
            refused = await ria.get(f"/api/v1/runs/spreadsheet/{uuid}/report")
            assert refused.status_code == 503
            assert "the scratch disk is full" in refused.json()["detail"]
            assert list(stack.resources.scratch.glob("report-*")) == []

        report = await ria.get(f"/api/v1/runs/spreadsheet/{uuid}/report")
        assert report.status_code == 200
        assert "l%C3%A4ufer-errors.xlsx" in report.headers["content-disposition"]
        assert "Dora" in cells_of(report.content, tmp_path)
        assert list(stack.resources.scratch.glob("report-*")) == []

        url = f"/api/v1/uploads/{uuid}"
        assert (await ria.get(f"{url}/undo")).status_code == 404
        # Retention removes what it was about; what an undo needs is still there.
        store = spreadsheet_resources(stack.resources.database).store
        assert await store.purge(uuid, datetime.now(UTC))
        preview = await ria.get(f"{url}/undo/preview")
        assert preview.status_code == 200, preview.text
        assert preview.json()["conflicts"] == []
        undone = await ria.post(f"{url}/undo")
        assert undone.status_code == 202
        assert undone.headers["location"] == f"{url}/undo"
        status: dict[str, object] = {}

        async def finished() -> bool:
            nonlocal status
            status = (await ria.get(f"{url}/undo")).json()
            return status["state"] == "UNDONE"

        await eventually(finished)
        assert status["conflicts"] == []
        again = await ria.post(f"{url}/undo")
        assert again.status_code == 409
        assert "undone already" in again.json()["detail"]

        async def reported() -> bool:
            return f"undone due for spreadsheet-undo/{uuid}" in caplog.text

        await eventually(reported)


async def test_whole_sets_of_values_are_answered_by_rules(stack: Stack) -> None:
    groups = ("Kids blue", "KIDS red", "Sénior (18+)x", "Elders")
    rows = (("Rule", f"R{place}", "", each) for place, each in enumerate(groups))
    async with stack.browser(token("rita")) as rita:
        uuid = await import_in(rita, "COLUMN_MAPPING", sheet(HEADER, *rows), dryRun="true")
        upload = f"/api/v1/uploads/{uuid}"
        confirmed = await rita.post(f"{upload}/confirm", json={"what": "columns"})
        assert confirmed.status_code == 202, confirmed.text
        url = f"{upload}/values"
        found = (await rita.get(url, params={"text": "kids"})).json()["items"]
        assert [each["value"] for each in found] == ["Kids blue", "KIDS red"]
        wrong = await rita.patch(url, json={"rules": [{"create": True}]})
        assert (wrong.status_code, "name the field" in wrong.json()["detail"]) == (422, True)
        kids = {"field": "EVENT_CATEGORY_NAME", "text": "kids", "target_id": JUNIOR}
        body, seen = {"rules": [kids]}, {"if-match": '"2"'}
        saved = await rita.patch(url, json=body, headers=seen)
        assert (saved.status_code, saved.json()["open_values"]) == (200, 2)
        late = await rita.patch(url, json=body, headers=seen)
        assert late.status_code == 412
        rest = [{"confirm": True, "min_score": 0.8}, {"ignore": True}]
        assert (await rita.patch(url, json={"rules": rest})).json()["open_values"] == 0
        found = (await rita.get(url)).json()["items"]
        meanings = {each["value"]: each["target_name"] for each in found}
        assert meanings == {
            "Kids blue": "Junior (U18)",
            "KIDS red": "Junior (U18)",
            "Sénior (18+)x": "Senior (18+)",
            "Elders": None,
        }


def cells_of(workbook: bytes, folder: Path) -> set[object]:
    path = folder / "report.xlsx"
    path.write_bytes(workbook)
    with open_table(path) as source:
        return {cell for _, cells in source.rows() for cell in cells}


async def test_a_dry_run_reports_what_would_change(stack: Stack) -> None:
    row = ("Dry", "Run", "dry@example.org", "Senior (18+)")
    async with stack.browser() as anna:
        await import_in(anna, "COMPLETED", sheet(HEADER, row), autoStart="true")
        changed = sheet(HEADER, (*row[:3], "Masters (40+)"))
        uuid = await import_in(anna, "COMPLETED", changed, autoStart="true", dryRun="true")
        summary = (await anna.get(f"/api/imports/{uuid}/results/summary")).json()
        assert summary["updated"] == 1
        assert summary["differences"] == [
            {
                "rowNumber": 2,
                "table": "event_participants",
                "column": "category_id",
                "record": "Event participant",
                "title": "Category",
                "before": "Senior (18+)",
                "after": "Masters (40+)",
            }
        ]
        refused = await anna.post(f"/api/v1/uploads/{uuid}/undo")
        assert (refused.status_code, refused.json()["type"]) == (
            409,
            "urn:docflow:problem:wrong-state",
        )


async def test_start_skips_the_values(stack: Stack) -> None:
    async with stack.browser() as anna:
        strange = ("Emil", "Fuchs", "emil@example.org", "Toddlers")
        uuid = await import_in(anna, "COLUMN_MAPPING", sheet(HEADER, *GOOD, strange))
        started = await anna.post(f"/api/imports/{uuid}/start")
        assert started.status_code == 202
        status = await until(anna, uuid, "CELL_MAPPING")
        assert (status["processedRows"], status["parkedRows"]) == (2, 1)
        [toddlers] = (
            await anna.get(f"/api/imports/{uuid}/cell-mappings", params={"status": "UNRESOLVED"})
        ).json()
        answer = await anna.put(
            f"/api/imports/{uuid}/cell-mappings", json=[{"id": toddlers["id"], "ignore": True}]
        )
        assert answer.status_code == 202
        assert (await anna.post(f"/api/imports/{uuid}/start")).status_code == 202
        assert (await until(anna, uuid, "COMPLETED"))["successCount"] == 3


async def test_another_layout(stack: Stack) -> None:
    text = "Registrations 2026\n\nName;Vorname;E-Mail\nMüller;Jörg;joerg@example.org\n"
    async with stack.browser() as anna:
        uuid = await import_in(
            anna, "COLUMN_MAPPING", text.encode("cp1252"), headerLine="1", delimiter=","
        )
        url = f"/api/imports/{uuid}"
        upload = f"/api/v1/uploads/{uuid}"
        preview = (await anna.get(f"{upload}/preview")).json()
        assert preview["format"] == "csv"
        assert preview["layout"]["delimiter"] == ","
        layout = {"encoding": "cp1252", "delimiter": ";", "header_line": 3}
        changed = await anna.patch(upload, json={"layout": layout})
        assert changed.status_code == 200
        preview = (await anna.get(f"{upload}/preview")).json()
        assert preview["rows"][1] == {
            "line": 4,
            "cells": ["Müller", "Jörg", "joerg@example.org"],
        }
        columns = (await anna.get(f"{url}/column-mappings")).json()
        assert [each["sourceHeader"] for each in columns] == ["Name", "Vorname", "E-Mail"]


async def test_cancel(stack: Stack) -> None:
    async with stack.browser() as anna:
        uuid = await import_in(anna, "COLUMN_MAPPING")
        cancelled = await anna.delete(f"/api/imports/{uuid}", params={"reason": "wrong file"})
        assert cancelled.status_code == 200
        assert cancelled.json()["status"] == "CANCELLED"
        again = await anna.delete(f"/api/imports/{uuid}")
        assert again.status_code == 409
        assert "was cancelled" in again.json()["detail"]


async def test_a_reassigned_import_waits_for_the_new_person(stack: Stack) -> None:
    async with stack.browser() as anna:
        uuid = await import_in(anna, "COLUMN_MAPPING")
        body = {"assignee": {"to": "ben", "notify": "ben@example.org"}}
        answer = await anna.patch(f"/api/v1/uploads/{uuid}", json=body)
        assert answer.status_code == 200
        assert (await anna.get(f"/api/imports/{uuid}")).json()["assignee"] == "ben"


async def test_mappings_come_with_the_status_on_request(stack: Stack) -> None:
    async with stack.browser() as anna:
        uuid = await import_in(anna, "COLUMN_MAPPING")
        plain = await anna.get(f"/api/imports/{uuid}")
        assert "columnMappings" not in plain.json()
        full = await anna.get(f"/api/imports/{uuid}", params={"includeMappings": "true"})
        assert len(full.json()["columnMappings"]) == len(HEADER)
        assert full.json()["cellMappings"] == []
        assert full.headers["etag"] == plain.headers["etag"]


async def test_pages_of_a_list(stack: Stack) -> None:
    async with stack.browser(token("pia", 77)) as pia:
        empty = await pia.get("/api/imports")
        assert empty.json() == []
        assert empty.headers["x-total-count"] == "0"
    async with stack.browser() as anna:
        for _ in range(3):
            await upload(anna)
        everything = await anna.get("/api/imports", params={"size": 200})
        total = int(everything.headers["x-total-count"])
        assert total == len(everything.json()) >= 3
        page = await anna.get("/api/imports", params={"page": 1, "size": 1})
        assert [each["identifier"] for each in page.json()] == [everything.json()[1]["identifier"]]
        links = page.links
        assert links["first"]["url"].startswith("/api/imports?")
        assert {name: httpx.URL(link["url"]).params["page"] for name, link in links.items()} == {
            "first": "0",
            "prev": "0",
            "next": "2",
            "last": str(total - 1),
        }
        of_state = await anna.get("/api/imports", params={"status": "COLUMN_MAPPING"})
        assert {each["status"] for each in of_state.json()} <= {"COLUMN_MAPPING"}
        of_others = await anna.get("/api/imports", params={"organisationId": 2})
        assert of_others.json() == []


async def test_types_name_their_fields(stack: Stack) -> None:
    async with stack.browser() as anna:
        types = {
            each["name"]: each for each in (await anna.get("/api/v1/uploads/types")).json()["items"]
        }
        assert {"EVENT_PARTICIPANT", "MEMBERSHIP", "RESULT"} <= set(types)
        participant = types["EVENT_PARTICIPANT"]
        assert participant["context"]["table"] == "events"
        category = next(
            each for each in participant["fields"] if each["name"] == "EVENT_CATEGORY_NAME"
        )
        assert category["resolver"] == "event_categories"
        assert category["aliases"]


async def test_the_inbox_shows_only_runs_of_the_caller(stack: Stack) -> None:
    async with stack.browser() as anna:
        uuid = await import_in(anna, "COLUMN_MAPPING")

    async def inbox(bearer: str, **query: str) -> dict[str | None, dict[str, str]]:
        async with stack.browser(bearer) as browser:
            answer = await browser.get("/api/inbox", params=query)
            assert answer.status_code == 200
            return {each["identifier"]: each for each in answer.json()}

    async def there() -> bool:
        return uuid in await inbox(token("ben", 1, "viewer"))

    await eventually(there)
    entry = (await inbox(token("ben", 1, "viewer")))[uuid]
    assert entry["pipeline"] == "spreadsheets"
    assert entry["filename"] == "registrations.csv"
    assert entry["waitingFor"] == "anna"
    assert uuid in await inbox(token("olga", 1, "operator"))
    assert uuid not in await inbox(token("theo", 2))
    assert uuid not in await inbox(token("otto", 2, "operator"))
    assert uuid in await inbox(token(), mine="true")
    assert uuid not in await inbox(token("ben", 1, "viewer"), mine="true")


async def test_a_context_of_another_organisation_is_not_there(stack: Stack) -> None:
    async with stack.browser() as anna:
        refused = await upload(anna, contextId=str(THEIR_EVENT))
        assert refused.status_code == 422
        assert "in your organisation" in refused.json()["detail"]
    async with stack.browser(token("theo", 2)) as theo:
        assert (await upload(theo, contextId=str(EVENT))).status_code == 422
