"""`make bench-peers`: the same documents by docflow and by what people use in its place.

It prints markdown and asserts nothing; --write puts the table into docs/benchmarks.md.
"""

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

import asyncpg

from benchmarks import machine
from benchmarks.imports.workload import ROWS
from benchmarks.peers.contenders import Absent, Contender, contenders
from benchmarks.peers.measuring import Measured, measure
from benchmarks.peers.steps import TABLES, VISIBILITY_SECONDS
from benchmarks.report import Table, middle
from benchmarks.stack import open_servers

PAGE: Final = Path(__file__).parents[2] / "docs" / "benchmarks.md"
BEGIN: Final = "<!-- peers: made by `make bench-peers ARGS=--write` -->"
END: Final = "<!-- peers end -->"
_COLUMNS: Final = (
    *("how", "documents/s", "CPU ms per document", "p50 ms", "p95 ms"),
    *("rows lost", "rows doubled", "lines of code"),
)
_NOTES: Final = (
    "CPU is that of the worker and of the servers that it needs: PostgreSQL, Redis, Temporal, the "
    "emulator of Service Bus. Latency is of one document on an idle stack.",
    "SIGKILL to the worker and its processes when a third of the documents was done; then it was "
    "started again. Lost is what was missing when nothing more happened.",
    "All but docflow do the least that imports the rows: no check of a value, no report, no "
    "answer of a person, and rows without a key, so that a step that runs twice doubles them. An "
    "upsert by a key, as docflow's, would double none.",
    f"Redis gives the messages of a killed worker to another one after {VISIBILITY_SECONDS} s "
    "here, and after an hour by Celery's default.",
    "Lines are those of the program beside the three steps; docflow's is its command.",
)


async def run(count: int, rounds: int) -> str:
    """The table, as markdown."""
    often = "1 round" if rounds == 1 else f"{rounds} rounds"
    table = Table(f"{count:,} documents of {ROWS} rows (20 KB), {often}", _COLUMNS)
    with tempfile.TemporaryDirectory(prefix="docflow-bench-") as name:
        async with (
            open_servers(Path(name), in_memory=False) as servers,
            cast(Any, asyncpg.create_pool(servers.database_url, min_size=1, max_size=2)) as pool,
            contenders(servers) as (present, absent),
        ):
            await pool.execute(TABLES)
            found: dict[str, list[Measured]] = {each.name: [] for each in present}
            for number in range(rounds):
                # In another order each time: none always runs after the same one.
                for each in random.sample(list(present), len(present)):
                    tag = f"p{number}{present.index(each)}"
                    found[each.name].append(await measure(servers, pool, each, tag, count))
    _fill(table, present, absent, found)
    return table.markdown()


def _fill(
    table: Table,
    present: Sequence[Contender],
    absent: Sequence[Absent],
    found: dict[str, list[Measured]],
) -> None:
    for each in present:
        seen = found[each.name]
        figures = [
            f"{middle([one.rate for one in seen]):.0f}",
            f"{middle([one.cpu for one in seen]):.1f}",
            f"{1e3 * middle([one.p50 for one in seen]):.0f}",
            f"{1e3 * middle([one.p95 for one in seen]):.0f}",
            f"{max(one.lost for one in seen):,}",
            f"{max(one.doubled for one in seen):,}",
            "1" if each.is_docflow else str(seen[0].lines),
        ]
        table.add(each.name, *figures)
    for each in absent:
        table.add(each.name, *[""] * (len(_COLUMNS) - 1))
        table.notes.append(f"{each.name} is missing: {each.why}")
    table.notes += _NOTES


def with_part(page: str, part: str) -> str:
    """A page whose part between the marks is another one."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE} has no part that begins with {BEGIN}")
    return f"{before}{BEGIN}\n\n{part}\n{END}{after}"


def main(arguments: Sequence[str]) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks peers", description=__doc__)
    parser.add_argument("--documents", type=int, default=400, help="of a round [400]")
    parser.add_argument("--rounds", type=int, default=3, help="figures are medians [3]")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}")
    parser.add_argument("--quick", action="store_true", help="little of it: whether it works")
    options = parser.parse_args(arguments)
    count, rounds = (30, 1) if options.quick else (options.documents, options.rounds)
    described = machine.describe()
    table = asyncio.run(run(count, rounds))
    print(f"## Against others\n\n{described}\n{table}")
    if options.write:
        PAGE.write_text(with_part(PAGE.read_text(), f"{described}\n{table}"))


if __name__ == "__main__":
    main(sys.argv[1:])
