"""A copy of the tree in which a mutation is planted and tests run."""

import re
import shutil
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import environ
from pathlib import Path
from time import monotonic
from typing import Final

from tests.mutations.planted import ROOT, Mutation, product_texts

TIMEOUT_SECONDS: Final = 240
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (tests/\S+?\.py::[\w:]+)", re.MULTILINE)
_PASSED, _TESTS_FAILED, _NOT_FOUND, _NONE_CHOSEN = 0, 1, 4, 5


@dataclass(frozen=True)
class Run:
    """What a run of tests has shown.

    Attributes:
        failed: Those that failed; none: all passed.
        seconds: How long it took.
        output: What it printed.
    """

    failed: tuple[str, ...]
    seconds: float
    output: str


class NoVerdict(Exception):
    """The run says nothing about the tests: they were not found, or could not be loaded."""


@dataclass(frozen=True)
class Tree:
    """A copy of the tree; the tree itself is never changed."""

    root: Path

    @classmethod
    def copy(cls, root: Path) -> "Tree":
        """Copy all files that Git knows or would take, as they are now."""
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                # With its time: a planted text never has the time of what the bytecode is of.
                shutil.copy2(ROOT / name, root / name)
        for name in (".venv", "node_modules"):
            if (ROOT / name).exists():
                (root / name).symlink_to((ROOT / name).resolve())
        return cls(root)

    @contextmanager
    def planted(self, mutation: Mutation) -> Generator[None]:
        """Plant a mutation, and take it out afterwards.

        Raises:
            Misplaced: Its text doesn't stand in the product exactly once.
        """
        target = mutation.place(product_texts(self.root))
        text = (self.root / target).read_text()
        (self.root / target).write_text(text.replace(mutation.old, mutation.new))
        try:
            yield
        finally:
            shutil.copy2(ROOT / target, self.root / target)

    def test(self, tests: Sequence[str], *options: str) -> Run:
        """Run tests by file or node id.

        Raises:
            NoVerdict: They were not found, or could not be loaded.
        """
        begun = monotonic()
        kills = any(each.startswith("tests/crash/") for each in tests)
        chaos = {"DOCFLOW_CHAOS": "1"} if kills else {}
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider"),
                *("--tb=line", f"--timeout={TIMEOUT_SECONDS}", *options, *tests),
            ],
            cwd=self.root,
            env={**environ, "PYTHONPATH": str(self.root), "PYTHONHASHSEED": "0", **chaos},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        failed = tuple(dict.fromkeys(_FAILED.findall(done.stdout)))
        seconds = round(monotonic() - begun, 1)
        if done.returncode in (_PASSED, _NONE_CHOSEN) or (
            done.returncode == _TESTS_FAILED and failed
        ):
            return Run(failed, seconds, done.stdout)
        why = "no such test" if done.returncode == _NOT_FOUND else "the tests could not be loaded"
        raise NoVerdict(f"{why}: {' '.join(tests)}\n{done.stdout[-2000:]}")
