"""Files that their sender still writes when they are read."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from tests.support.transfers.actions import Endpoints, old, read, reading
from workflows.shared.errors import NOT_YET, PERMANENT
from workflows.transfers.partners import Partner, PlaceKind

DAYS = 86_400.0


@dataclass
class Growing(Endpoints):
    """A folder in which a file grows between two looks."""

    file: Path = Path()
    more: bytes = b""

    async def pause(self, seconds: float) -> None:
        """Let the file grow."""
        await super().pause(seconds)
        if self.more:
            with self.file.open("ab") as file:
                file.write(self.more)


@pytest.mark.parametrize(
    ("age", "stable_seconds", "more", "pauses", "becomes"),
    [
        (60, None, b"", [2.0], b"half"),
        (60, None, b" and half", [2.0], "StableSeconds"),
        # The second look is of files that may still be written.
        (2 * DAYS, None, b" and half", [], b"half"),
        (60, 0, b" and half", [], b"half"),
        (60, 30, b" and half", [], b"half"),
        # A clock that is ahead says nothing.
        (-7_200, None, b" and half", [2.0], "StableSeconds"),
    ],
)
async def test_a_file_is_read_when_two_looks_agree(
    tmp_path: Path,
    age: float,
    stable_seconds: int | None,
    more: bytes,
    pauses: list[float],
    becomes: bytes | str,
) -> None:
    share = tmp_path / "share"
    old(share / "a.csv", b"half", age)
    ends = Growing.at(tmp_path, Partner(name="acme", kind=PlaceKind.FOLDER, container=str(share)))
    ends.file, ends.more = share / "a.csv", more
    action = reading("a.csv", stable_seconds=stable_seconds)
    if isinstance(becomes, bytes):
        result = await read(ends, action)
        assert await ends.contents(result.files) == {"a.csv": becomes}
    else:
        with pytest.raises(ApplicationError, match=becomes) as failed:
            await read(ends, action)
        assert failed.value.type == NOT_YET
    assert ends.pauses == pauses


async def test_a_file_is_empty_when_no_byte_of_it_came(tmp_path: Path) -> None:
    share = tmp_path / "share"
    old(share / "a.csv", b"")
    ends = Endpoints.at(tmp_path, Partner(name="acme", kind=PlaceKind.FOLDER, container=str(share)))
    with pytest.raises(ApplicationError, match="`AllowEmpty` accepts such files") as failed:
        await read(ends, reading("a.csv"))
    assert failed.value.type == PERMANENT
    result = await read(ends, reading("a.csv", allow_empty=True))
    assert result.remarks == ("1 of 1 files are empty",)
