"""Imports that wait for a person: what they cost the worker, and how soon one answers."""

import random
import time
from pathlib import Path
from typing import Final

from benchmarks.memory import resident_bytes
from benchmarks.report import Table, at_most, percentile
from benchmarks.spreadsheets.open import UNKNOWN, open_imports
from benchmarks.spreadsheets.stack import SheetStack, open_sheet_stack
from stack.postgres import postgres_server

WAITING: Final = 10_000
MEMORY: Final = 100e6
UPDATE_P95: Final = 0.5
_UPDATES: Final = 300


async def measure(folder: Path) -> Table:
    """Start them straight on Temporal, then answer some that are still untouched."""
    with postgres_server(durable=True) as database:
        async with open_sheet_stack(folder / "stack", database) as stack:
            idle = resident_bytes(stack.worker.pid)
            began = time.perf_counter()
            waiting = await open_imports(stack, WAITING)
            reached = time.perf_counter() - began
            full = resident_bytes(stack.worker.pid)
            seconds = [await _answer(stack, uuid) for uuid in random.sample(waiting, _UPDATES)]
    table = Table(
        f"{WAITING:,} imports that wait for a person",
        ("idle worker MB", "with all of them MB", "update p50 ms", "p95 ms", "p99 ms"),
    )
    shown = (f"{1000 * percentile(seconds, share):.0f}" for share in (0.5, 0.95, 0.99))
    table.add(f"{idle / 1e6:.0f}", f"{full / 1e6:.0f}", *shown)
    p95 = 1000 * percentile(seconds, 0.95)
    table.notes += [
        f"they cost the worker {at_most((full - idle) / 1e6, MEMORY / 1e6, ' MB')}",
        f"{_UPDATES} of them, drawn at random, answer at p95 "
        f"{at_most(p95, 1000 * UPDATE_P95, ' ms')}; through the gateway, one after another",
        f"all of them waited after {reached:.0f} s",
    ]
    return table


async def _answer(stack: SheetStack, uuid: str) -> float:
    """Leave the unknown column out; return the seconds that takes."""
    began = time.perf_counter()
    answer = await stack.api.put(
        f"/api/imports/{uuid}/column-mappings", json=[{"id": UNKNOWN, "ignore": True}]
    )
    seconds = time.perf_counter() - began
    answer.raise_for_status()
    return seconds
