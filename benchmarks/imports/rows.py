"""Large tables, from the file to committed rows, against the limit of reader and database."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import asyncpg

from adapters.database import upgrade
from benchmarks.children import measured
from benchmarks.imports import workload
from benchmarks.report import Table, at_least, at_most, middle, spread
from stack.postgres import postgres_server

ROWS = 100_000
LARGE_WORKBOOK_ROWS = 1_000_000
LARGE_TEXT_ROWS = 5_000_000
"""About 500 MB."""
SHARE = 0.5
MEMORY = 300e6

_WRITERS: dict[str, Callable[[Path, int], None]] = {
    "csv": workload.write_csv,
    "xlsx": workload.write_xlsx,
}


@dataclass
class Runs:
    """Rounds of one way to load one file."""

    seconds: list[float] = field(default_factory=list[float])
    cpu: list[float] = field(default_factory=list[float])
    peaks: list[float] = field(default_factory=list[float])

    def add(self, result: Any) -> None:
        """One round."""
        self.seconds.append(result["wall"])
        self.cpu.append(result["cpu"])
        self.peaks.append(result["peak_bytes"])


async def compare(folder: Path, rounds: int) -> Table:
    """Both formats into both databases, the product and the limit in turn."""
    table = Table(
        f"{ROWS:,} rows x {len(workload.WIDE_HEADER)} columns",
        ("file, database", "docflow s", "limit s", "docflow rows/s", "of the limit", "peak MB"),
    )
    shares: list[float] = []
    peaks: list[float] = []
    with postgres_server(durable=True) as postgres:
        await upgrade(postgres)
        for suffix, write in _WRITERS.items():
            master = folder / f"mto.{suffix}"
            write(master, ROWS)
            for url in (postgres, f"sqlite:///{folder / suffix}.db"):
                await upgrade(url)
                ours, limit = Runs(), Runs()
                for number in range(rounds):
                    limit.add(await _run("limit", folder, url, master, number))
                    ours.add(await _run("product", folder, url, master, number))
                share = middle([b / a for a, b in zip(ours.seconds, limit.seconds, strict=True)])
                shares.append(share)
                peaks.append(max(ours.peaks))
                table.add(
                    f"{suffix.upper()}, {'PostgreSQL' if url is postgres else 'SQLite'}",
                    f"{spread(ours.seconds, 2)}",
                    f"{spread(limit.seconds, 2)}",
                    f"{ROWS / middle(ours.seconds):,.0f}",
                    f"{share:.0%}",
                    f"{max(ours.peaks) / 1e6:.0f}",
                )
    table.notes += [
        f"the slowest reaches {at_least(100 * min(shares), 100 * SHARE, ' % of the limit')}",
        f"peak memory of the process: {at_most(max(peaks) / 1e6, MEMORY / 1e6, ' MB')}",
        "limit: python-calamine or csv.reader, then COPY or executemany, nothing checked",
    ]
    return table


async def large(folder: Path) -> Table:
    """Files that do not fit into the memory a worker is given."""
    table = Table("Large files into PostgreSQL", ("file", "MB", "rows/s", "s", "peak MB"))
    peaks: list[float] = []
    with postgres_server(durable=True) as postgres:
        await upgrade(postgres)
        for suffix, rows in (("csv", LARGE_TEXT_ROWS), ("xlsx", LARGE_WORKBOOK_ROWS)):
            master = folder / f"large.{suffix}"
            _WRITERS[suffix](master, rows)
            size = master.stat().st_size
            result = await _run("product", folder, postgres, master, 0)
            peaks.append(result["peak_bytes"])
            table.add(
                f"{rows:,} rows, {suffix.upper()}",
                f"{size / 1e6:.0f}",
                f"{rows / result['wall']:,.0f}",
                f"{result['wall']:.0f}",
                f"{result['peak_bytes'] / 1e6:.0f}",
            )
            master.unlink()
    table.notes.append(
        f"peak memory of the process: {at_most(max(peaks) / 1e6, MEMORY / 1e6, ' MB')}"
    )
    return table


async def _run(how: str, folder: Path, url: str, master: Path, number: int) -> Any:
    """One load into an empty table, in a process of its own."""
    await _empty(url)
    environment = {
        **os.environ,
        "DATABASE_URL": url,
        "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
        "DOCFLOW_SCRATCH": str(folder / "scratch"),
    }
    if how == "limit":
        return await measured("load", how, str(master), environment=environment)
    container = folder / "blobs" / "imports"
    container.mkdir(parents=True, exist_ok=True)
    file = container / f"{master.stem}-{number}{master.suffix}"
    shutil.copyfile(master, file)
    return await measured("load", how, str(file), environment=environment)


async def _empty(url: str) -> None:
    if url.startswith("sqlite"):
        for ending in ("", "-wal", "-shm"):
            Path(url.removeprefix("sqlite:///") + ending).unlink(missing_ok=True)
        await upgrade(url)
        return
    connection = cast(Any, await asyncpg.connect(url))
    try:
        await connection.execute("TRUNCATE mto_lines, import_tasks, import_progress")
    finally:
        await connection.close()
