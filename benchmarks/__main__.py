"""`make bench-PIPELINE`, `make bench-commands`: what a pipeline or a command costs."""

import importlib
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from benchmarks import overview
from workers import catalogue

_OTHERS = ("commands", "peers", "status")


ALL = "all"
_WITH_PEERS = "peers"
"""Needs an environment of its own."""


def names() -> Sequence[str]:
    """The commands, and the pipelines of the catalogue that have a benchmark."""
    every = (*(pipeline.name for pipeline in catalogue.PIPELINES), *_OTHERS)
    return [name for name in every if find_spec(f"benchmarks.{name}") is not None]


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark that is named first, with the other arguments."""
    name = next(iter(arguments), None)
    if name == ALL:
        overview.run([each for each in names() if each != _WITH_PEERS], arguments[1:])
        return
    if name not in names():
        sys.exit(f"usage: python -m benchmarks {{{','.join((ALL, *names()))}}} [PART ...]")
    importlib.import_module(f"benchmarks.{name}.__main__").main(arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
