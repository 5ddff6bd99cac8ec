"""`make bench-PIPELINE`: what a pipeline costs, on one machine."""

import importlib
import sys
from collections.abc import Sequence

from workers import catalogue


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark of the pipeline that is named first, with the other arguments."""
    names = [pipeline.name for pipeline in catalogue.PIPELINES]
    name = next(iter(arguments), None)
    if name not in names:
        sys.exit(f"usage: python -m benchmarks {{{','.join(names)}}} [PART ...]")
    importlib.import_module(f"benchmarks.{name}").main(arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
