"""Test files that may find a mutation, the quickest first."""

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.mutations.planted import ROOT, Mutation

FOLDERS: Final = ("unit", "cases", "replay", "adapters", "workflows", "gateway", "crash", "e2e")
"""Folders of tests, by what they cost."""


def candidates(
    mutation: Mutation, file: str, folders: Sequence[str] = FOLDERS, root: Path = ROOT
) -> list[str]:
    """Return the test files that import the module of a mutation, mention what it changes, or are
    of its pipeline; the likeliest of each folder first.

    Args:
        mutation: What is planted.
        file: Where, from the root.
        folders: Of `tests/`.
        root: The tree.
    """
    module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    names = (
        _names_around(mutation, (root / file).read_text()) if file.endswith(".py") else set[str]()
    )
    found: list[tuple[int, int, str]] = []
    for path in (root / "tests").rglob("test_*.py"):
        text = path.read_text()
        imported = f"from {module} import" in text or f"import {module}" in text
        mentioned = sum(name in text for name in names)
        folder = path.relative_to(root / "tests").parts[0]
        own = mutation.pipeline in path.parts or folder == "cases"
        if folder in folders and (imported or mentioned or own):
            likely = 2 * imported + mentioned + own
            found.append((FOLDERS.index(folder), -likely, str(path.relative_to(root))))
    return [file for _, _, file in sorted(found)]


def _names_around(mutation: Mutation, text: str) -> set[str]:
    """Names of the class and the function that hold the text, where they are not private."""
    line = text[: text.index(mutation.old)].count("\n") + 1
    last = line + mutation.old.strip("\n").count("\n")
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, kinds) and node.lineno <= last and line <= (node.end_lineno or 0)
        if not node.name.startswith("_") and len(node.name) > 4
    }
