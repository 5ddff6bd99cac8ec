"""Documents of batches, and what is read of each: `documents.toml` has the right values."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from adapters.files.texts.pool import FileTexts
from adapters.ports.errors import UnreadableDocument

HERE = Path(__file__).parent
CASES: list[dict[str, Any]] = tomllib.loads((HERE / "documents.toml").read_text())["case"]


@pytest.mark.parametrize("case", CASES, ids=[case["file"] for case in CASES])
async def test_a_document_is_read(case: dict[str, Any], tmp_path: Path) -> None:
    path = HERE / "documents" / case["file"]
    async with FileTexts() as texts:
        if refused := case.get("refused"):
            with pytest.raises(UnreadableDocument, match=refused):
                await texts.extract(path, path.name, tmp_path)
            return
        found = await texts.extract(path, path.name, tmp_path)
    assert case.get("title", found.title) == found.title
    assert case.get("text", "") in found.text
    notes = "; ".join(found.notes)
    assert case["notes"] in notes if case.get("notes") else not notes
    assert case.get("files", []) == [file.filename for file in found.files]
    inside = b"".join(file.path.read_bytes() for file in found.files)
    assert case.get("inside", "").encode() in inside


def test_every_file_has_an_outcome() -> None:
    listed = {each["file"] for each in CASES}
    assert {path.name for path in (HERE / "documents").iterdir()} == listed
