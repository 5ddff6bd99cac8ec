"""The planted mutations: what each breaks, and where the product holds its text."""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
PRODUCT: Final = ("activities", "adapters", "workflows", "workers")
PIPELINES: Final = ("imports", "batches", "jobs", "spreadsheets", "transfers")
OUTCOMES: Final = HERE / "caught.toml"


class Misplaced(Exception):
    """The text of a mutation doesn't stand in the product exactly once."""


@dataclass(frozen=True)
class Mutation:
    """One fault to plant.

    Attributes:
        id: Its name.
        pipeline: Whose users it harms.
        breaks: What goes wrong, in a user's words.
        file: Where the text stood when it was written: a hint alone.
        old: Text that the product holds once.
        new: What stands there instead.
        uncaught: Why no test finds it; None: one does.
    """

    id: str
    pipeline: str
    breaks: str
    file: str
    old: str
    new: str
    uncaught: str | None = None

    def place(self, texts: Mapping[str, str]) -> str:
        """Return the file that holds the text.

        Args:
            texts: Every file of the product with its content.

        Raises:
            Misplaced: No file holds it, or it stands there more than once.
        """
        found = [path for path, text in texts.items() for _ in range(text.count(self.old))]
        if len(found) == 1:
            return found[0]
        where = f"{len(found)} times ({', '.join(found[:5])})" if found else "nowhere"
        raise Misplaced(
            f"{self.id}: the product holds {self.old!r} {where}, it must hold it once; it stood in "
            f"{self.file}. Change `old` and `new` in tests/mutations/{self.pipeline}.toml to the "
            f"code that now does this work. What it breaks: {self.breaks}"
        )


def planted(ids: Collection[str] = ()) -> list[Mutation]:
    """Read the mutations, all or those with these ids."""
    every = [
        Mutation(pipeline=pipeline, **entry)
        for pipeline in PIPELINES
        for entry in tomllib.loads((HERE / f"{pipeline}.toml").read_text())["mutation"]
    ]
    unknown = set(ids) - {each.id for each in every}
    if unknown:
        raise SystemExit(f"no mutation has the id {', '.join(sorted(unknown))}")
    return [each for each in every if not ids or each.id in ids]


def product_texts(root: Path = ROOT) -> dict[str, str]:
    """Read the files of the product, by path from the root."""
    return {
        path.relative_to(root).as_posix(): path.read_text()
        for folder in PRODUCT
        if (root / folder).is_dir()
        for pattern in ("*.py", "*.html", "*.j2", "*.js", "*.sql")
        for path in sorted((root / folder).rglob(pattern))
    }


def outcomes() -> dict[str, dict[str, Any]]:
    """Read what was found last: the tests that fail under each mutation, and how long they take."""
    return tomllib.loads(OUTCOMES.read_text()) if OUTCOMES.exists() else {}


def store(found: Mapping[str, Mapping[str, Any]]) -> None:
    """Write what was found, in the order of the mutations."""
    lines = ["# Written by `python -m tests.mutations`: the tests that fail under each mutation."]
    for id in (each.id for each in planted() if each.id in found):
        tests = "".join(f'  "{test}",\n' for test in found[id]["caught_by"])
        lines.append(f"\n[{id}]\ncaught_by = [\n{tests}]\nseconds = {found[id]['seconds']}")
    OUTCOMES.write_text("\n".join(lines) + "\n")
