"""Texts that were saved in a wrong encoding are recognised, and named by imports."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.imports import column_table
from tests.support.imports.documents import read, text, workbook
from workflows.shared.cells import repair_garbled

GARBLED = "M\u00fcller & S\u00f6hne".encode().decode("cp1252")


@given(st.text("aeA \u00fc\u00f6\u00e4\u00df\u00e9\u00d1\u00c5\u2019\u20ac", max_size=12))
def test_what_was_meant_is_found(written: str) -> None:
    garbled = written.encode().decode("latin-1")
    assert repair_garbled(garbled) == (None if written.isascii() else written)


NAMES = (
    *("M\u00fcller", "\u00c5s", "\u00c2ge", "\u00d1u\u00f1ez", "\u00c3"),
    "Caf\u00e9 \u2013 B\u00e2timent",
)


@pytest.mark.parametrize("name", NAMES)
def test_what_people_write_is_not_garbled(name: str) -> None:
    assert repair_garbled(name) is None


@pytest.mark.parametrize("size", [1, 1_000_000])
def test_garbled_texts_of_a_list_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(column_table, "COLUMN_BYTES", size)
    lines = (f"E-{n},Kr\u00e4ne,5,{GARBLED}" for n in range(20))
    found = read(text(tmp_path / "f.csv", "Code,Description,Rate,Make", *lines))
    assert found.note == (
        "Saved in a wrong encoding and taken as they stand: "
        f"{GARBLED!r} (meant: 'M\u00fcller & S\u00f6hne')."
    )


def test_columns_that_are_not_used_are_not_looked_at(tmp_path: Path) -> None:
    rows = [["Code", "Colour"], ["E-1", GARBLED]]
    assert read(workbook(tmp_path / "f.xlsx", {"A": rows})).note == (
        "Columns not used: 'Colour' (1 value)."
    )
