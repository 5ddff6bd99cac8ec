"""Print what the repository weighs, in lines, files, folders and nodes of its syntax trees.

`make house` ends with this table, so that a change can say what it took away. It counts the files
that git tracks, and every line of them: docstrings, blank lines and `import` lines too. A line that
moves between two groups of the table takes nothing away.
"""

import ast
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PRODUCT: Final = ("activities", "adapters", "workflows", "workers", "docflow")
PYTHON: Final = ".py"
PAGES: Final = (".html", ".js", ".css")
SHELL: Final = (".sh", ".run", ".yml", ".yaml", ".toml")
GROUPS: Final[Mapping[str, tuple[Sequence[str], Sequence[str]]]] = MappingProxyType(
    {
        "product": (PRODUCT, (PYTHON,)),
        "templates and scripts": (PRODUCT, PAGES),
        "declared types": (PRODUCT, (".yaml",)),
        "stack": (("stack",), (PYTHON,)),
        "emulators": (("emulators",), (PYTHON,)),
        "deploy": (("deploy", ".ci"), (PYTHON, *SHELL, "run")),
        "benchmarks": (("benchmarks",), (PYTHON,)),
        "tests": (("tests",), (PYTHON,)),
        "cases of tests": (("tests",), (".toml",)),
    }
)
"""Folders and suffixes by row of the table."""


@dataclass(frozen=True, slots=True)
class Weight:
    """What some files weigh.

    Attributes:
        lines: Of text.
        files: How many.
        folders: Folders that hold one of them.
        nodes: Of Python's syntax trees; 0 for other languages.
    """

    lines: int
    files: int
    folders: int
    nodes: int


def weigh(root: Path, paths: Iterable[Path]) -> Weight:
    """Return the weight of files.

    Args:
        root: Folder that the paths are relative to.
        paths: Text files in UTF-8.

    Raises:
        SyntaxError: A Python file cannot be parsed.
    """
    lines = files = nodes = 0
    folders: set[Path] = set()
    for path in paths:
        text = (root / path).read_text(encoding="utf-8")
        lines += text.count("\n")
        files += 1
        folders.add(path.parent)
        if path.suffix == PYTHON:
            nodes += sum(1 for _ in ast.walk(ast.parse(text)))
    return Weight(lines, files, len(folders), nodes)


def tracked(root: Path) -> Sequence[Path]:
    """Return the files that git tracks and that exist, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True
    ).stdout
    return [path for each in listed.split("\0") if each and (root / (path := Path(each))).is_file()]


def table(root: Path) -> Mapping[str, Weight]:
    """Return the weight of each group of files, and of each room of the product."""
    paths = tracked(root)

    def of(folders: Sequence[str], suffixes: Sequence[str]) -> Weight:
        return weigh(
            root,
            (p for p in paths if p.parts[0] in folders and p.name.endswith(tuple(suffixes))),
        )

    rooms = {f"  {room}": of((room,), (PYTHON,)) for room in PRODUCT if (root / room).is_dir()}
    groups = {name: of(folders, suffixes) for name, (folders, suffixes) in GROUPS.items()}
    return {"product": groups.pop("product"), **rooms, **groups}


def main(arguments: Sequence[str]) -> None:
    """Print the table of this repository, or of the checkout that the first argument names."""
    root = Path(next(iter(arguments), ROOT))
    print(f"{'':24}{'lines':>9}{'files':>7}{'folders':>9}{'nodes':>11}")
    for name, weight in table(root).items():
        print(
            f"{name:24}{weight.lines:>9,}{weight.files:>7,}{weight.folders:>9,}{weight.nodes:>11,}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
