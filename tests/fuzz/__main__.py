"""Have readers read many damaged files: `python -m tests.fuzz`."""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.rounds import KIND_NAMES, fuzz


async def _run(given: argparse.Namespace) -> int:
    folder = given.keep or Path(tempfile.mkdtemp(prefix="fuzz-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {given.seed}; files that a reader fails at are kept in {folder}")
    faults = 0
    for kind in given.kinds or KIND_NAMES:
        started = time.monotonic()
        async for format, outcome in fuzz(
            kind, given.times, given.seed, folder, given.format, given.first
        ):
            took, started = time.monotonic() - started, time.monotonic()
            failed = len(outcome.faults)
            print(
                f"{kind:10} {format:12} read {outcome.read:6,}  refused {outcome.refused:6,}"
                f"  contained {len(outcome.contained):4,}  failed {failed:4,}  {took:6.1f} s",
                flush=True,
            )
            for fault in outcome.faults:
                print(f"  {fault}"[:400], flush=True)
            faults += failed
    return 1 if faults else 0


def main() -> int:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KIND_NAMES)}")
    parser.add_argument("--format", action="append", default=[], help="only this one; repeatable")
    parser.add_argument("--times", type=int, default=10_000, help="files of each format")
    parser.add_argument("--seed", default=str(random.randrange(10**6)), help="makes the same files")
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--keep", type=Path, help="folder for files that a reader fails at")
    given = parser.parse_args()
    if unknown := set(given.kinds) - set(KIND_NAMES):
        parser.error(f"there is no kind {', '.join(sorted(unknown))}")
    return asyncio.run(_run(given))


if __name__ == "__main__":
    sys.exit(main())
