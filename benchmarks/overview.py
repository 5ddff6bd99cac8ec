"""`make bench`: every benchmark, one after another, and one table of what has a target."""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from benchmarks.report import Table

_TARGET: Final = re.compile(
    r"(?:(?P<what>[^;|]*?)[:,]? )?(?P<figure>[\d.,]+[^;|,]*), "
    r"target (?P<target>at (?:most|least) [^:]*): (?P<met>met|\*\*not met\*\*)"
)


def judged(name: str, output: str) -> Iterator[Sequence[str]]:
    """Rows of the table: benchmark, part, figure, target, met or not.

    Args:
        name: Of the benchmark.
        output: The markdown that it printed.
    """
    part = ""
    for line in output.splitlines():
        if line.startswith("### "):
            part = line.removeprefix("### ")
        for found in _TARGET.finditer(line.removeprefix("- ")):
            what = (found["what"] or "").strip()
            text = f"{part}: {what}" if what else part
            yield (name, text, found["figure"], found["target"], found["met"])


def run(names: Sequence[str], arguments: Sequence[str]) -> None:
    """Run each in a process of its own, and print the table last; one that fails is named in it."""
    table = Table("All of them", ("benchmark", "part", "figure", "target", ""))
    for name in names:
        command = (sys.executable, "-m", "benchmarks", name, *arguments)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines: list[str] = []
            for line in process.stdout:
                print(line, end="", flush=True)
                lines.append(line)
        for row in judged(name, "".join(lines)):
            table.add(*row)
        if process.returncode:
            table.add(name, "", "", "", f"**ended with {process.returncode}**")
    print(table.markdown(), flush=True)
