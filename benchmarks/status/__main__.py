"""`make bench-status`: lists, `docflow status` and the inbox beside millions of status rows.

It prints markdown and asserts nothing. A million rows take about 1 GB of disk.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from adapters.database.engine import open_database
from adapters.database.schema import upgrade
from benchmarks import machine
from benchmarks.memory import peak_bytes, resident_bytes
from benchmarks.report import Table
from benchmarks.stack import served_environment
from benchmarks.status.reading import answers, fill_inbox, reads, removed, timed
from benchmarks.status.rows import build_indexes, fill, seconds_of_writing
from stack.children import free_port
from stack.embedded import gateway_part
from stack.postgres import postgres_server
from stack.temporal import temporal_server
from workers.shared.connect import connect

COLUMNS = ("read", "first, ms", "fastest, ms", "p50, ms", "p95, ms")


async def run(rows: int, times: int) -> None:
    """Fill the tables and read."""
    print(f"## Status rows\n\n{machine.describe()}", flush=True)
    table = Table(f"{rows:,} status rows of imports", COLUMNS)
    with tempfile.TemporaryDirectory(prefix="docflow-bench-") as name, postgres_server() as url:
        await upgrade(url)
        async with (
            open_database(url) as database,
            temporal_server(Path(name) / "temporal", ui=False, in_memory=True) as temporal,
        ):
            client = await connect(temporal.address)
            await fill_inbox(client)
            began = time.perf_counter()
            await fill(database, rows)
            filled = time.perf_counter()
            await build_indexes(database)
            indexed = time.perf_counter()
            await timed(table, reads(database), times)
            port = free_port()
            environment = served_environment(url, temporal.address, Path(name), port)
            async with (
                gateway_part(Path(name), environment, port).ready() as process,
                httpx.AsyncClient(
                    base_url=environment["DOCFLOW_ADDRESS"],
                    headers={"Authorization": f"Bearer {environment['DOCFLOW_TOKEN']}"},
                    timeout=60,
                ) as gateway,
            ):
                before = resident_bytes(process.pid)
                await timed(table, answers(gateway), times)
                table.notes.append(
                    f"memory of the gateway: {before / 1e6:.0f} MB when it was ready, at most "
                    f"{peak_bytes(process.pid) / 1e6:.0f} MB"
                )
            followed, alone = [
                await seconds_of_writing(database, followed=each) for each in (True, False)
            ]
            await removed(table, database, min(rows // 10, 50_000))
    table.notes.append(
        f"rows were made in {filled - began:.0f} s, their indexes built in {indexed - filled:.0f} s"
    )
    table.notes.append(
        f"a written status row takes the database {1e6 * followed:.0f} us of 20,000 at once, "
        f"{1e6 * alone:.0f} of them without its row in the table of runs"
    )
    print(table.markdown(), flush=True)


def main(arguments: Sequence[str]) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks status", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="status rows [1000000]")
    parser.add_argument("--times", type=int, default=40, help="each read [40]")
    parser.add_argument("--quick", action="store_true", help="little of it: whether it works")
    options = parser.parse_args(arguments)
    rows, times = (20_000, 5) if options.quick else (options.rows, options.times)
    asyncio.run(run(rows, times))


if __name__ == "__main__":
    main(sys.argv[1:])
