"""Vector data as programs write them: what is kept, named and asked."""

import shutil
import tomllib
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from adapters.files.vectors.reader import VectorFiles
from adapters.ports.spatial import QuestionOpen
from tests.support.jobs.vector_reading import Read
from workflows.jobs.vectors import VectorOptions

FOLDER: Final = Path(__file__).parent
CASES: Final[Mapping[str, Any]] = tomllib.loads((FOLDER / "geo.toml").read_text())


@pytest.fixture
async def files() -> AsyncGenerator[VectorFiles]:
    async with VectorFiles() as found:
        yield found


@pytest.mark.parametrize("name", CASES)
async def test_geo(files: VectorFiles, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    if parameter := case.get("asks"):
        with pytest.raises(QuestionOpen) as caught:
            await _read(files, tmp_path / "asked", name, {})
        assert caught.value.parameter == parameter
    found = await _read(files, tmp_path / "read", name, case.get("options", {}))
    assert found.layer.rejected == case.get("rejected", 0)
    assert found.layer.kept == found.layer.features > 0
    assert case.get("problem", "") in "\n".join(found.problems())
    assert case.get("problems", found.problems()) == found.problems()
    assert case.get("note", "") in "\n".join(found.layer.notes)
    assert case.get("encoding", found.layer.encoding) == found.layer.encoding
    if "values" in case:
        assert [str(value) for value in found.rows()[0][:-1]] == case["values"]
    if "row" in case:
        assert found.rows()[0][-1] == case["row"]


async def _read(files: VectorFiles, folder: Path, name: str, options: Mapping[str, Any]) -> Read:
    inside, outside = folder / "in", folder / "out"
    inside.mkdir(parents=True)
    outside.mkdir()
    path = Path(shutil.copy(FOLDER / "geo" / name, inside / "x"))
    given = VectorOptions(dataset="test", **options)
    return Read(await files.read(path, outside, given), outside)
