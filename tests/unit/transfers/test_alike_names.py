"""Files of one run whose names some servers take for one."""

import unicodedata
from pathlib import Path

import pytest

from activities.transfers.write_file import FileWriting
from tests.support.imports.activities import environment
from tests.support.transfers.actions import Endpoints, old, read, reading
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.settings import Overwrite, WriteFile

NAMES = ("A.csv", "a.csv", *(unicodedata.normalize(form, "ä.csv") for form in ("NFC", "NFD")))


@pytest.mark.parametrize(
    ("overwrite", "path", "remarks"),
    [
        (Overwrite.REPLACE, "out/{name}", 2),
        # Names by which no server is misled, and settings under which it refuses the second one.
        (Overwrite.NUMBER, "out/{name}", 0),
        (Overwrite.REFUSE, "out/{name}", 0),
    ],
)
async def test_names_that_differ_in_case_or_accents_alone_are_remarked_where_one_may_be_lost(
    tmp_path: Path, overwrite: Overwrite, path: str, remarks: int
) -> None:
    share = tmp_path / "share"
    for name in (*NAMES, "b.csv"):
        old(share / "in" / name, name.encode())
    (share / "out").mkdir()
    ends = Endpoints.at(tmp_path, Partner(name="acme", kind=PlaceKind.FOLDER, container=str(share)))
    found = await read(ends, reading("in/*.csv", at_most=9))
    action = WriteFile(partner="acme", overwrite=overwrite)
    order = ends.order(action, {"path": path}, found.files)
    result = await environment().run(FileWriting(ends.ports).write_file, order)
    said = [each for each in result.remarks if "it has the last one" in each]
    assert len(said) == remarks
    assert {each.name for each in (share / "out").iterdir()} == {*NAMES, "b.csv"}
