"""Freezes what the table engines make of the corpus, or shows all that they make of one file."""

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

from tests.golden.corpus import Document, documents, entry_of, freeze, frozen
from tests.golden.outcomes import Outcome


def main() -> None:
    """Read the corpus; without arguments write `frozen.jsonl` and name what has changed."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--show", metavar="NAME", help="print the whole outcome of one file")
    options = parser.parse_args()
    if options.show:
        [document] = [each for each in documents() if each.name == options.show]
        outcome = asyncio.run(_outcome(document))
        print(json.dumps(outcome, ensure_ascii=False, sort_keys=True, indent=1))
        return
    before = frozen()
    entries = [entry_of(each, asyncio.run(_outcome(each))) for each in documents()]
    freeze(entries)
    changed = [each["name"] for each in entries if each != before.get(each["name"])]
    print(f"{len(entries)} files, {len(changed)} changed", *changed, sep="\n")


async def _outcome(document: Document) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        return await document.outcome(Path(folder))


if __name__ == "__main__":
    main()
