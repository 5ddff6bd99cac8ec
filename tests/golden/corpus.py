"""The files of the corpus, and what was frozen of each."""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from tests.golden.generated import Generated, generated
from tests.golden.outcomes import Outcome, of_import, of_spreadsheet

ROOT: Final = Path(__file__).parents[2]
FROZEN: Final = Path(__file__).with_name("frozen.jsonl")
_CASES: Final = ROOT / "tests" / "cases"
_SHOWN: Final = 1_300
"""Characters of an outcome that are kept; of a longer one the first rows, and its digest."""


@dataclass(frozen=True)
class Document:
    """One file of the corpus.

    Attributes:
        name: With the folder that it is from.
        pipeline: Whose engine reads it.
        type: Document type or import type.
        source: Where it is, what makes it, or what it holds.
        fields: Of the message.
    """

    name: str
    pipeline: str
    type: str
    source: Path | Generated | bytes
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])

    async def outcome(self, folder: Path) -> Outcome:
        """Return what becomes of it today."""
        match self.source:
            case Path():
                path = self.source
            case Generated():
                path = self.source.write(folder)
            case bytes():
                path = folder / self.name.rpartition("/")[2]
                path.write_bytes(self.source)
        if self.pipeline == "imports":
            return of_import(path, self.type, **self.fields)
        return await of_spreadsheet(path, self.type, folder / "club")


def documents() -> list[Document]:
    """Return all files of the corpus."""
    made = [Document(f"generated/{e.name}", e.pipeline, e.type, e) for e in generated()]
    return [*made, *_samples(), *_people()]


def _samples() -> list[Document]:
    readme = (ROOT / "samples" / "README.md").read_text()
    return [
        Document(
            f"samples/{name}",
            "spreadsheets" if type.isupper() else "imports",
            type,
            ROOT / "samples" / name,
        )
        for name, type in re.findall(r"^\| `([\w.]+)` \| (\w+) \|", readme, re.MULTILINE)
    ]


def _people() -> list[Document]:
    cases = tomllib.loads((_CASES / "people.toml").read_text())
    return [
        Document(
            f"people/{name}",
            "spreadsheets",
            case["type"],
            case["content"].lstrip().encode() if "content" in case else _CASES / "people" / name,
        )
        for name, case in cases.items()
    ]


def frozen() -> dict[str, Any]:
    """Read what was frozen, by name."""
    lines = FROZEN.read_text().splitlines() if FROZEN.exists() else []
    return {entry["name"]: entry for entry in map(json.loads, lines)}


def entry_of(document: Document, outcome: Outcome) -> dict[str, Any]:
    """What is kept of an outcome: digest, counts, and as much of it as there is room for."""
    text = json.dumps(outcome, ensure_ascii=False, sort_keys=True)
    return {
        "name": document.name,
        "type": document.type,
        "digest": hashlib.sha256(text.encode()).hexdigest()[:16],
        "counts": {name: len(each) for name, each in _lists(outcome)},
        "outcome": _shortened(outcome),
    }


def _shortened(outcome: Outcome) -> Outcome:
    shown = outcome
    for most in (12, 8, 5, 3, 2, 1):
        if len(json.dumps(shown, ensure_ascii=False)) <= _SHOWN:
            break
        shown = outcome | {name: each[:most] for name, each in _lists(outcome)}
    return shown


def _lists(outcome: Outcome) -> list[tuple[str, list[Any]]]:
    return [(name, cast("list[Any]", each)) for name, each in outcome.items() if type(each) is list]


def freeze(entries: list[dict[str, Any]]) -> None:
    """Write what is frozen from now on."""
    lines = (json.dumps(each, ensure_ascii=False, sort_keys=True) for each in entries)
    FROZEN.write_text("".join(f"{line}\n" for line in lines))
