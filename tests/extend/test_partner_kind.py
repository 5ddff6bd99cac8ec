"""A kind of partner of a package: files are written, read, moved and deleted there."""

from hashlib import sha256
from pathlib import Path

import pytest

from adapters.places import custom
from adapters.ports.errors import Denied
from adapters.ports.places import FileChanged, NameTaken, Place
from tests.support.transfers.places import open_places, pieces
from workflows.shared.errors import RuleViolation
from workflows.transfers.partners import Partner, PlaceKind, check_record
from workflows.transfers.settings import Guarantee, Overwrite


@pytest.fixture
def kinds(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(site))
    found = custom.installed_kinds.__wrapped__()
    monkeypatch.setattr(custom, "installed_kinds", lambda: found)


def partner(**fields: str) -> Partner:
    return Partner(name="acme", kind=PlaceKind.CUSTOM, **{"custom": "shelf", **fields})


async def write(place: Place, content: bytes, path: str, overwrite: Overwrite) -> str:
    written = await place.write(
        pieces(content),
        path,
        size=len(content),
        sha256=sha256(content).hexdigest(),
        overwrite=overwrite,
        verify=Guarantee.HASH,
        owner="run",
    )
    return written.entry.path


async def test_files_of_an_own_kind_are_used_as_others(kinds: None, tmp_path: Path) -> None:
    own = partner(container=str(tmp_path / "shelf"), root="out")
    async with open_places(None, [tmp_path]).open(own) as place:
        assert (await place.probe()).probed_with[0].startswith("out/")
        assert await write(place, b"1,2\n", "a.csv", Overwrite.REFUSE) == "a.csv"
        # A repeated attempt changes nothing; other bytes are refused, or get a number.
        assert await write(place, b"1,2\n", "a.csv", Overwrite.REFUSE) == "a.csv"
        with pytest.raises(NameTaken):
            await write(place, b"other", "a.csv", Overwrite.REFUSE)
        assert await write(place, b"other", "a.csv", Overwrite.NUMBER) != "a.csv"
        assert len(await place.list("a*.csv", 10)) == 2
        [first] = await place.list("a.csv", 10)
        assert b"".join([piece async for piece in place.read(first)]) == b"1,2\n"
        await place.move(first, "done/a.csv")
        [moved] = await place.list("done/*", 10)
        await write(place, b"changed\n", "done/a.csv", Overwrite.REPLACE)
        with pytest.raises(FileChanged):
            await place.delete(moved)
        assert await place.delete(await place.stat("done/a.csv"))
    left = [each.name for each in (tmp_path / "shelf").rglob("*") if each.is_file()]
    assert len(left) == 1 and left[0] != "a.csv"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"custom": "drawer"}, "'drawer', which this worker has not; installed are: shelf"),
        ({}, "the record of acme: a shelf needs `container`"),
    ],
)
async def test_an_own_kind_that_cannot_be_used_is_named(
    kinds: None, tmp_path: Path, fields: dict[str, str], said: str
) -> None:
    with pytest.raises(Denied, match=said):
        async with open_places(None, [tmp_path]).open(partner(**fields)):
            pass


def test_a_record_of_an_own_kind_names_it() -> None:
    with pytest.raises(RuleViolation, match="belong together"):
        check_record(Partner(name="acme", kind=PlaceKind.CUSTOM))
