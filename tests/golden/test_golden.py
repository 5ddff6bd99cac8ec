"""What the table engines make of the corpus is what was frozen of it."""

import json
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final

import pytest

from tests.golden.corpus import FROZEN, Document, documents, entry_of, frozen

KNOWN: Final = frozen()
LARGEST: Final = 400_000
"""Bytes of all that is frozen."""


@pytest.mark.parametrize("document", documents(), ids=lambda each: each.name)
async def test_a_table_becomes_what_was_frozen(document: Document, tmp_path: Path) -> None:
    known = KNOWN.get(document.name, {})
    now = json.loads(json.dumps(entry_of(document, await document.outcome(tmp_path))))
    if now == known:
        return
    diff = unified_diff(_lines(known), _lines(now), "frozen", "now", lineterm="", n=2)
    pytest.fail(
        "\n".join(
            (
                f"{document.name} ({document.type}) is read in another way:",
                *diff,
                "",
                f"all of it: python -m tests.golden --show {document.name}",
                "if it is meant: python -m tests.golden",
            )
        ),
        pytrace=False,
    )


def test_all_that_is_frozen_is_in_the_corpus_and_small() -> None:
    assert {each.name for each in documents()} == set(KNOWN)
    assert FROZEN.stat().st_size <= LARGEST


def _lines(entry: Mapping[str, Any]) -> list[str]:
    """An entry with one row or problem a line."""
    lines = [f"digest: {entry.get('digest')}", f"counts: {entry.get('counts')}"]
    for name, value in sorted(entry.get("outcome", {}).items()):
        values: list[Any] = value if isinstance(value, list) else [value]
        lines += [f"{name}: {json.dumps(each, ensure_ascii=False)}" for each in values]
    return lines
