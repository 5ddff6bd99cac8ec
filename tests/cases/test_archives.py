"""Damaged archives and packages, and what is said of each: `archives.toml` has the right words."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from adapters.files import archives
from adapters.files.documents import FileDocuments
from adapters.ports.errors import UnreadableDocument
from adapters.ports.transfers import ExtractionLimits
from workflows.transfers.paths import ArchiveNames

HERE = Path(__file__).parent
CASES: list[dict[str, Any]] = tomllib.loads((HERE / "archives.toml").read_text())["case"]


def read_table(path: Path) -> None:
    with FileDocuments().open_workbook(path, filename=path.name, encoding=None) as book:
        for sheet in book.sheets:
            list(book.table(sheet.name).rows())


def read_archive(path: Path) -> None:
    limits = ExtractionLimits(files=10, bytes=1 << 20, ratio=100)
    for _, content in archives.zip_members(path, ArchiveNames(), limits, None):
        list(content)


@pytest.mark.parametrize("case", CASES, ids=[case["file"] for case in CASES])
def test_damage_is_named(case: dict[str, Any]) -> None:
    read = {"table": read_table, "archive": read_archive}[case["as"]]
    with pytest.raises(UnreadableDocument, match=case["refused"]):
        read(HERE / "archives" / case["file"])


def test_every_file_has_an_outcome() -> None:
    assert {path.name for path in (HERE / "archives").iterdir()} == {each["file"] for each in CASES}
