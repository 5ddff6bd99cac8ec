"""Large tables, from the file to committed rows, against the limits of reader and database."""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import asyncpg

from adapters.database.engine import open_database
from adapters.database.schema import upgrade
from adapters.types.files import builtin_types, read_type
from adapters.types.store import SqlDeclaredTypes
from benchmarks.children import measured
from benchmarks.imports import workload
from benchmarks.imports.load import DECLARED, TEAM
from benchmarks.report import Table, at_least, at_most, middle, spread
from stack.postgres import postgres_server

ROWS = 100_000
LARGE_WORKBOOK_ROWS = 1_000_000
LARGE_TEXT_ROWS = 5_000_000
"""About 500 MB."""
TEAM_ROWS = 20_000
REFUSED_ROWS = (0, 1, 1_000, TEAM_ROWS)
REFUSED_SECONDS = 10
"""For a table of a team that refuses 1,000 of its rows."""
RAW_SHARE = 0.5
UPSERT_SHARE = 0.7
DECLARED_SHARE = 0.95
DECLARED_ROUNDS = 8
"""For each of the other comparisons: it looks for a difference of 5 %, and one round has 10 %."""
MEMORY = 300e6

_TEAM_TABLE = f"CREATE TABLE {TEAM} (code text PRIMARY KEY, amount int CHECK (amount >= 0))"
_TEAM_TYPE = f"""
name: {TEAM}
title: Yard
scope: []
key: [code]
target: {{table: {TEAM}}}
fields:
  code: {{kind: code, required: true}}
  amount: {{kind: integer}}
"""
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
    """Both formats, the limits and the product in turn."""
    table = Table(
        f"{ROWS:,} rows x {len(workload.WIDE_HEADER)} columns",
        (
            *("file", "docflow s", "upsert s", "raw s", "docflow rows/s"),
            *("of the upsert", "of the raw write", "CPU s", "of the upsert's CPU", "peak MB"),
        ),
    )
    of_upsert: list[float] = []
    of_raw: list[float] = []
    peaks: list[float] = []
    with postgres_server(durable=True) as postgres:
        await upgrade(postgres)
        await _declare(postgres)
        for suffix, write in _WRITERS.items():
            master = folder / f"mto.{suffix}"
            write(master, ROWS)
            raw, upsert, ours = await _in_turn(
                ("raw", "upsert", "product"), folder, postgres, master, rounds
            )
            of_upsert.append(_share(ours.seconds, upsert.seconds))
            of_raw.append(_share(ours.seconds, raw.seconds))
            peaks.append(max(ours.peaks))
            table.add(
                suffix.upper(),
                *(spread(runs.seconds, 2) for runs in (ours, upsert, raw)),
                f"{ROWS / middle(ours.seconds):,.0f}",
                f"{of_upsert[-1]:.0%}",
                f"{of_raw[-1]:.0%}",
                spread(ours.cpu, 2),
                f"{_share(ours.cpu, upsert.cpu):.0%}",
                f"{max(ours.peaks) / 1e6:.0f}",
            )
    table.notes += [
        "CPU is that of the loading process, without PostgreSQL's server: beside other work it "
        "says more than seconds do",
        "the slowest reaches "
        f"{at_least(100 * min(of_upsert), 100 * UPSERT_SHARE, ' % of the upsert')}",
        "the slowest reaches "
        f"{at_least(100 * min(of_raw), 100 * RAW_SHARE, ' % of the raw write')}",
        f"peak memory of the process: {at_most(max(peaks) / 1e6, MEMORY / 1e6, ' MB')}",
        "both limits: python-calamine or csv.reader, nothing checked; upsert: COPY "
        "into a staging table, then one INSERT ... ON CONFLICT; raw: into the table itself",
    ]
    return table


async def declared(folder: Path, rounds: int) -> Table:
    """The same rows for docflow's own type and for one that a team declares with its fields."""
    table = Table(
        f"{ROWS:,} rows of a declared type",
        ("file", "CPU s of docflow's own", "CPU s of the declared one", "its share of the rows/s"),
    )
    shares: list[float] = []
    with postgres_server(durable=True) as postgres:
        await upgrade(postgres)
        await _declare(postgres)
        for suffix, write in _WRITERS.items():
            master = folder / f"own.{suffix}"
            write(master, ROWS)
            own, theirs = await _in_turn(
                ("product", "declared"), folder, postgres, master, rounds * DECLARED_ROUNDS
            )
            shares.append(_share(theirs.cpu, own.cpu))
            row = (suffix.upper(), spread(own.cpu, 2), spread(theirs.cpu, 2))
            table.add(*row, f"{shares[-1]:.1%}")
    table.notes += [
        f"{rounds * DECLARED_ROUNDS} rounds; the share is that of rows per second of CPU, round by "
        "round",
        "a declared type: "
        f"{at_least(100 * min(shares), 100 * DECLARED_SHARE, ' % of the rows/s of an own one')}",
    ]
    return table


async def _in_turn(
    ways: Sequence[str], folder: Path, postgres: str, master: Path, rounds: int
) -> list[Runs]:
    """What each way costs. The first of a round is the last of the next: drift cancels out."""
    costs = {how: Runs() for how in ways}
    for number in range(rounds):
        for how in ways[:: -1 if number % 2 else 1]:
            costs[how].add(await _run(how, folder, postgres, master, number))
    return list(costs.values())


def _share(ours: Sequence[float], limit: Sequence[float]) -> float:
    """The median of what each round reaches of its limit."""
    return middle([b / a for a, b in zip(ours, limit, strict=True)])


async def large(folder: Path) -> Table:
    """Files that do not fit into the memory a worker is given."""
    table = Table("Large files into PostgreSQL", ("file", "MB", "rows/s", "s", "peak MB"))
    peaks: list[float] = []
    with postgres_server(durable=True) as postgres:
        await upgrade(postgres)
        await _declare(postgres)
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


async def refused(folder: Path) -> Table:
    """Rows of which a table of a team refuses some, spread over the file."""
    table = Table(f"{TEAM_ROWS:,} rows into a table of a team", ("refused", "s", "rows/s"))
    seconds: dict[int, float] = {}
    with postgres_server(durable=True) as postgres:
        await upgrade(postgres)
        await _declare(postgres)
        for count in REFUSED_ROWS:
            file = folder / f"refused-{count}.csv"
            every = TEAM_ROWS // count if count else TEAM_ROWS + 1
            amounts = ((n, -n if n % every == 0 else n) for n in range(1, TEAM_ROWS + 1))
            file.write_text("code,amount\n" + "".join(f"{n},{each}\n" for n, each in amounts))
            seconds[count] = (await _run("team", folder, postgres, file, 0))["wall"]
            rate = f"{TEAM_ROWS / seconds[count]:,.0f}"
            table.add(f"{count:,}", f"{seconds[count]:.1f}", rate)
    table.notes.append(f"1,000 refused rows: {at_most(seconds[1_000], REFUSED_SECONDS, ' s')}")
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
    if how in ("raw", "upsert"):
        return await measured("imports.load", how, str(master), environment=environment)
    container = folder / "blobs" / "imports"
    container.mkdir(parents=True, exist_ok=True)
    file = container / f"{how}-{master.stem}-{number}{master.suffix}"
    shutil.copyfile(master, file)
    return await measured("imports.load", how, str(file), environment=environment)


async def _declare(url: str) -> None:
    """Put a copy of the type of take-offs in force, and a type with a table of its team."""
    own = builtin_types()["mto"].model_copy(update={"name": DECLARED, "table": None})
    connection = cast(Any, await asyncpg.connect(url))
    try:
        await connection.execute(_TEAM_TABLE)
    finally:
        await connection.close()
    async with open_database(url) as database:
        await SqlDeclaredTypes(database).apply(own, read_type(_TEAM_TYPE, TEAM))


async def _empty(url: str) -> None:
    connection = cast(Any, await asyncpg.connect(url))
    try:
        tables = f"mto_lines, import_tasks, import_progress, docflow_types.{DECLARED}, {TEAM}"
        await connection.execute(f"TRUNCATE {tables}")
    finally:
        await connection.close()
