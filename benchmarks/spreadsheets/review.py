"""The review of a large spreadsheet over PostgreSQL: pages of rows, and changes of all of them."""

import csv
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.children import Failed
from benchmarks.report import Table, at_most, middle, spread
from benchmarks.spreadsheets import workload
from benchmarks.spreadsheets.rows import new_database
from benchmarks.spreadsheets.stack import SheetStack, is_reviewed, open_sheet_stack, until
from stack.postgres import postgres_server

ROWS: Final = 170_000
PAGE_SECONDS: Final = 0.3
CHANGE_SECONDS: Final = 3.0
_MAIL: Final = 3
_TEAM: Final = 11


async def measure(folder: Path, rounds: int) -> Table:
    """One import whose mail addresses are all wrong at first."""
    table = Table(
        f"{ROWS:,} rows x {len(workload.HEADER)} columns, reviewed over PostgreSQL",
        ("what", "s", "rows with problems afterwards"),
    )
    file = folder / "registrations.csv"
    write(file, ROWS)
    with postgres_server(durable=True) as server:
        database = await new_database(server)
        async with open_sheet_stack(folder / "review", database) as stack:
            began = time.perf_counter()
            uuid = await stack.upload(file, auto_start=True, review=True)
            await until(lambda: is_reviewed(stack, uuid))
            opened = time.perf_counter() - began
            table.add("upload to the first page", f"{opened:.1f}", f"{await _wrong(stack, uuid):,}")
            pages = [await _page(stack, uuid, 0) for _ in range(3 * rounds)]
            table.add("first page of 50 rows", spread(pages, 2), "")
            last = [await _page(stack, uuid, ROWS // 50 - 1) for _ in range(rounds)]
            table.add("last page of 50 rows", spread(last, 2), "")
            changes: list[float] = []
            versions: dict[str, int] = {}
            for name, operation in _changes().items():
                seconds, wrong, versions[name] = await _change(stack, uuid, operation)
                changes.append(seconds)
                table.add(name, f"{seconds:.1f}", f"{wrong:,}")
            for name, version in reversed(versions.items()):
                undo = {"kind": "UNDO", "version": version}
                seconds, wrong, _ = await _change(stack, uuid, undo)
                changes.append(seconds)
                table.add(f"taken back: {name}", f"{seconds:.1f}", f"{wrong:,}")
            cell = {"kind": "SET", "cells": [{"row": 77, "column": _MAIL, "value": "a@b.example"}]}
            seconds, wrong, _ = await _change(stack, uuid, cell)
            table.add("one cell", f"{seconds:.2f}", f"{wrong:,}")
    table.notes += [
        f"first page: {at_most(middle(pages), PAGE_SECONDS, ' s')}",
        f"slowest change of all rows: {at_most(max(changes), CHANGE_SECONDS, ' s')}",
        "through the gateway, the run and a worker; all rows are checked against each other in the "
        "background, which is not part of a change",
    ]
    return table


def write(path: Path, rows: int) -> None:
    """Registrations whose mail addresses are all wrong."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(workload.HEADER)
        for row in workload.registrations(rows):
            writer.writerow([str(cell).replace("@", "(at)") for cell in row])


def _changes() -> Mapping[str, Mapping[str, Any]]:
    return {
        "replace in every mail address": {
            "kind": "REPLACE",
            "column": _MAIL,
            "find": "(at)",
            "put": "@",
        },
        "constant in every row": {"kind": "CONSTANT", "column": _TEAM, "value": "Club"},
        "dates read day first": {"kind": "NOTATION", "column": 4, "notation": "DAY_FIRST"},
    }


async def _wrong(stack: SheetStack, uuid: str) -> int:
    answer = await stack.api.get(f"/api/v1/uploads/{uuid}/review")
    return answer.raise_for_status().json()["wrong"]


async def _page(stack: SheetStack, uuid: str, page: int) -> float:
    began = time.perf_counter()
    answer = await stack.api.get(
        f"/api/v1/uploads/{uuid}/review/rows", params={"cursor": 50 * page}
    )
    seconds = time.perf_counter() - began
    found = answer.raise_for_status().json()["items"]
    if len(found) != 50:
        raise Failed(f"page {page} holds {len(found)} rows")
    return seconds


async def _change(
    stack: SheetStack, uuid: str, operation: Mapping[str, Any]
) -> tuple[float, int, int]:
    """Seconds of a change, the rows with a problem afterwards, and its version."""
    began = time.perf_counter()
    answer = await stack.api.post(f"/api/v1/uploads/{uuid}/review/changes", json=operation)
    seconds = time.perf_counter() - began
    made = answer.raise_for_status().json()
    # The next one is measured by itself.
    await until(lambda: is_reviewed(stack, uuid))
    return seconds, made["wrong_rows"], made["version"]
