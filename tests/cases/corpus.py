"""Cases of a corpus: one file for each family of rules, one table for each case."""

import json
import tomllib
from pathlib import Path
from typing import Any

Case = dict[str, Any]


def cases(folder: Path) -> dict[str, Case]:
    """Read the cases of a folder by family and title.

    A case with `each` is one case for each of its texts: `{in}` and `{out}` stand for the first and
    the second text of a pair.

    Args:
        folder: Holds the families.

    Raises:
        ValueError: Two cases of a family have one title.
    """
    found: dict[str, Case] = {}
    for family in sorted(folder.glob("*.toml")):
        for case in tomllib.loads(family.read_text())["case"]:
            for texts in case.pop("each", [()]):
                title = " ".join([f"{family.stem}: {case['title']}", *texts[:1]])
                if title in found:
                    raise ValueError(f"two cases are called {title}")
                found[title] = _filled(case, texts) if texts else case
    return found


def files(folder: Path) -> set[str]:
    """Return the names of the files of a corpus that are no families."""
    return {path.name for path in folder.iterdir() if path.suffix != ".toml"}


def _filled(case: Case, texts: list[str]) -> Case:
    written = json.dumps(case)
    for name, text in zip(("{in}", "{out}"), texts, strict=False):
        written = written.replace(name, json.dumps(text)[1:-1])
    return json.loads(written)
