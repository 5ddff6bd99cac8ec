"""One conformance suite for every endpoint."""

import hashlib
import os
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.aws.session import AwsSettings
from adapters.azure.storage_account import StorageAccount
from adapters.ports.errors import PortError
from adapters.ports.places import (
    Entry,
    FileChanged,
    FileMissing,
    NameRefused,
    NameTaken,
    Naming,
    Place,
    PlaceError,
)
from tests.adapters.transfers.conftest import Endpoint, azure_end, s3_end
from tests.support.transfers.places import MemoryNamings, joined, pieces, write
from workflows.transfers.settings import Guarantee, Overwrite

LARGE = random.Random(3).randbytes((11 << 20) + 123)
"""Several blocks, the last one short."""
ODD = "Übersicht für %20 & (neu) #1 +é.csv"


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", LARGE], ids=["empty", "small", "large"])
async def test_what_is_written_is_read(far: Endpoint, content: bytes) -> None:
    async with far.open() as place:
        written = await write(place, "inbox/day/file.csv", content)
        assert (written.entry.path, written.entry.size) == ("inbox/day/file.csv", len(content))
        assert not written.existed
        entry = await place.stat("inbox/day/file.csv")
        assert await joined(place.read(entry)) == content


async def test_a_name_with_odd_characters_is_kept(far: Endpoint) -> None:
    async with far.open() as place:
        await write(place, ODD, b"x")
        assert await joined(place.read(await place.stat(ODD))) == b"x"


async def test_written_again_it_changes_nothing(far: Endpoint) -> None:
    async with far.open() as place:
        await write(place, "file.csv", b"the same")
        again = await write(place, "file.csv", b"the same")
        assert again.existed
        assert await place.stat("file.csv") == again.entry


async def test_another_file_of_that_name_is_not_replaced(far: Endpoint) -> None:
    async with far.open() as place:
        await write(place, "file.csv", b"theirs")
        with pytest.raises(NameTaken, match="another file"):
            await write(place, "file.csv", b"our own")
        assert await joined(place.read(await place.stat("file.csv"))) == b"theirs"


async def test_a_large_file_does_not_replace_another_either(far: Endpoint) -> None:
    async with far.open() as place:
        await write(place, "file.csv", b"theirs")
        with pytest.raises(NameTaken):
            await write(place, "file.csv", LARGE)
        assert await joined(place.read(await place.stat("file.csv"))) == b"theirs"


async def test_it_is_replaced_where_the_settings_say_so(far: Endpoint) -> None:
    async with far.open() as place:
        await write(place, "file.csv", b"yesterday")
        written = await write(place, "file.csv", b"today!", overwrite=Overwrite.REPLACE)
        assert not written.existed
        assert await joined(place.read(await place.stat("file.csv"))) == b"today!"


async def test_a_number_is_added_to_a_name_that_is_taken(far: Endpoint) -> None:
    async with far.open() as place:
        for number, content in enumerate((b"one", b"two.", b"three")):
            written = await write(
                place, "in/file.tar.gz", content, overwrite=Overwrite.NUMBER, owner=f"run-{number}"
            )
            assert await joined(place.read(written.entry)) == content
        assert written.entry.path == "in/file-3.tar.gz"
        found = {
            name: (await place.stat(f"in/{name}")).size for name in ("file.tar.gz", "file-2.tar.gz")
        }
    assert found == {"file.tar.gz": 3, "file-2.tar.gz": 4}


@pytest.mark.parametrize("verify", list(Guarantee))
async def test_the_guarantee_is_named(far: Endpoint, verify: Guarantee) -> None:
    async with far.open() as place:
        written = await write(place, "file.csv", b"bytes", verify=verify)
    if verify is Guarantee.READ_BACK or far.kind == "sftp-direct":
        assert written.guarantee.startswith("read back")
    elif verify is Guarantee.SIZE:
        assert written.guarantee.startswith("size")
    else:
        expected = "SHA-256 checked by the server" if far.kind == "s3" else "read back"
        assert written.guarantee.startswith(expected)


async def test_bytes_that_were_not_promised_never_get_the_name(far: Endpoint) -> None:
    if far.kind == "sftp-direct":
        # A server without renames shows files while they are written.
        return
    async with far.open() as place:
        for promised in (b"promise", b"much longer than what comes", b"x"):
            with pytest.raises(PortError, match="they are not written"):
                await write(place, "file.csv", promised, chunks=lambda: pieces(b"another"))
        with pytest.raises(FileMissing):
            await place.stat("file.csv")
    assert _left_behind(far) == []


async def test_nothing_appears_when_the_bytes_break_off(far: Endpoint) -> None:
    async def breaking() -> AsyncIterator[bytes]:
        yield LARGE[: 7 << 20]
        raise PortError("the staged bytes are damaged")

    if far.kind == "sftp-direct":
        # A server without renames shows files while they are written.
        return
    async with far.open() as place:
        with pytest.raises(PortError, match="damaged"):
            await write(place, "file.csv", LARGE, chunks=breaking)
        with pytest.raises(FileMissing):
            await place.stat("file.csv")
        await write(place, "file.csv", LARGE)
    assert _left_behind(far) == []


async def test_a_file_that_was_picked_up_after_it_had_its_name_is_a_success(far: Endpoint) -> None:
    namings = MemoryNamings()
    async with far.open() as place:
        written = await write(place, "file.csv", b"bytes", namings=namings)
        assert await place.delete(written.entry)
        # The worker was killed before the run knew: another attempt.
        again = await write(place, "file.csv", b"bytes", namings=namings)
        assert again.picked_up
        with pytest.raises(FileMissing):
            await place.stat("file.csv")


async def test_an_attempt_that_was_killed_before_the_name_was_given_is_done_again(
    far: Endpoint,
) -> None:
    digest = hashlib.sha256(b"bytes").hexdigest()
    namings = MemoryNamings([Naming("file.csv", "file.csv", digest)])
    async with far.open() as place:
        if far.has_folders and far.kind != "sftp-direct":
            # What it left is under its temporary name.
            await _leave_temporary(far)
        written = await write(place, "file.csv", b"bytes", namings=namings)
        assert not written.picked_up
        assert await joined(place.read(written.entry)) == b"bytes"
    assert _left_behind(far) == []


async def test_a_failed_second_attempt_is_not_taken_for_a_file_that_was_picked_up(
    far: Endpoint,
) -> None:
    if not far.has_folders or far.kind == "sftp-direct":
        return
    digest = hashlib.sha256(b"bytes").hexdigest()
    namings = MemoryNamings([Naming("file.csv", "file.csv", digest)])
    await _leave_temporary(far)
    async with far.open() as place:
        with pytest.raises(PortError):
            await write(
                place, "file.csv", b"bytes", chunks=lambda: pieces(b"wrong"), namings=namings
            )
        assert not (await write(place, "file.csv", b"bytes", namings=namings)).picked_up
        assert (await place.stat("file.csv")).size == 5


HOSTILE = (
    "../out.csv",
    "in/../../out.csv",
    "/etc/passwd",
    "in//out.csv",
    "./out.csv",
    "in\\out.csv",
    "line\nbreak.csv",
    "nul\0.csv",
    "escape\x1b[2J.csv",
    "c1\x9b.csv",
    "lone\ud800.csv",
    "x" * 256,
    "ü" * 128,
    "/".join(["folder"] * 200),
    "",
)


async def test_hostile_names_are_refused_before_anything_is_sent(far: Endpoint) -> None:
    async with far.open() as place:
        for path in HOSTILE:
            entry = Entry(path, 1)
            for request in (
                write(place, path, b"x"),
                place.stat(path),
                place.list(path, 5),
                joined(place.read(entry)),
                place.delete(entry),
            ):
                with pytest.raises(NameRefused):
                    await request


async def test_a_missing_file_is_missing(far: Endpoint) -> None:
    async with far.open() as place:
        with pytest.raises(FileMissing):
            await place.stat("nowhere/nothing.csv")
        assert await place.delete(Entry("nothing.csv", 1)) is False
        assert await place.list("nothing.csv", 5) == []


async def test_patterns_name_files_of_one_folder(far: Endpoint) -> None:
    if far.kind == "https":
        return
    async with far.open() as place:
        for path in (
            "in/a1.csv",
            "in/a2.csv",
            "in/b1.csv",
            "in/A3.csv",
            "in/deep/a4.csv",
            "a5.csv",
        ):
            await write(place, path, b"x")
        assert [each.path for each in await place.list("in/a*.csv", 5)] == [
            "in/a1.csv",
            "in/a2.csv",
        ]
        assert [each.path for each in await place.list("in/[ab]1.csv", 5)] == [
            "in/a1.csv",
            "in/b1.csv",
        ]
        assert [each.path for each in await place.list("a?.csv", 5)] == ["a5.csv"]
        assert len(await place.list("in/*", 2)) == 3
        if far.has_folders:
            with pytest.raises(FileMissing, match="no folder 'none'"):
                await place.list("none/*", 2)
        else:
            assert await place.list("none/*", 2) == []
        with pytest.raises(NameRefused, match="last segment"):
            await place.list("*/a1.csv", 5)
        listed = (await place.list("in/a1.csv", 1))[0]
        assert listed == await place.stat("in/a1.csv")
        assert await joined(place.read(listed)) == b"x"


async def test_a_name_that_is_not_unicode_hides_no_other_file(far: Endpoint) -> None:
    if far.folder is None:
        return
    (far.folder / "a.csv").write_bytes(b"x")
    Path(os.fsdecode(os.fsencode(far.folder) + b"/b\xfc.csv")).write_bytes(b"y")
    async with far.open() as place:
        first, second = await place.list("*.csv", 5)
        assert await joined(place.read(first)) == b"x"
        with pytest.raises(NameRefused, match="is not valid Unicode"):
            await joined(place.read(second))


async def test_a_read_continues_where_it_broke_off(far: Endpoint) -> None:
    async with far.open() as place:
        await write(place, "file.bin", LARGE)
        entry = await place.stat("file.bin")
        for offset in (1, 5 << 20, len(LARGE)):
            assert await joined(place.read(entry, offset)) == LARGE[offset:]


async def test_a_file_that_was_replaced_is_not_read_on(far: Endpoint) -> None:
    async with far.open() as place:
        await write(place, "file.bin", b"first version")
        entry = await place.stat("file.bin")
        await write(place, "file.bin", b"second one, longer", overwrite=Overwrite.REPLACE)
        with pytest.raises(FileChanged):
            await joined(place.read(entry, 5))
        with pytest.raises(FileChanged):
            await place.delete(entry)
        if far.kind != "https":
            with pytest.raises(FileChanged):
                await place.move(entry, "done/file.bin")


async def test_a_file_is_moved_and_deleted(far: Endpoint) -> None:
    if far.kind in ("https", "sftp-direct"):
        return
    async with far.open() as place:
        entry = (await write(place, "file.csv", b"x1")).entry
        await place.move(await place.stat("file.csv"), "done/file.csv")
        with pytest.raises(FileMissing):
            await place.stat("file.csv")
        other = (await write(place, "file.csv", b"other")).entry
        with pytest.raises(NameTaken):
            await place.move(other, "done/file.csv")
        assert await place.delete(await place.stat("file.csv"))
        assert entry.size == (await place.stat("done/file.csv")).size


async def test_rights_and_time_are_asked_for(far: Endpoint) -> None:
    moment = datetime(2024, 2, 29, 12, tzinfo=UTC)
    async with far.open() as place:
        written = await write(place, "file.csv", b"x", mode=0o640, changed=moment)
        if far.kind == "sftp-no-attributes" or not far.has_folders:
            assert len(written.remarks) == 2
            return
        assert (await place.stat("file.csv")).changed == moment
    assert far.folder is not None
    assert (far.folder / "file.csv").stat().st_mode & 0o777 == 0o640


async def test_a_probe_leaves_nothing_behind(far: Endpoint) -> None:
    async with far.open() as place:
        profile = await place.probe()
    expected = {"sftp-non-atomic": "non-atomic", "sftp-direct": "direct", "https": "direct"}
    assert profile.rename == expected.get(far.kind, "atomic-replace")
    assert _left_behind(far) == []


async def _paths(place: Place, pattern: str) -> list[str]:
    return [each.path for each in await place.list(pattern, 5)]


def _left_behind(far: Endpoint) -> list[str]:
    """Temporary files."""
    return [] if far.folder is None else [path.name for path in far.folder.rglob(".docflow*")]


async def _leave_temporary(far: Endpoint) -> None:
    from workflows.transfers.paths import temporary

    assert far.folder is not None
    (far.folder / temporary("file.csv", "a-run")).write_bytes(b"by")


async def test_an_object_with_a_lease_is_left_as_it_is(azure_account: str) -> None:
    far = azure_end(azure_account)
    async with far.open() as place:
        entry = (await write(place, "leased.csv", b"x")).entry
        account = StorageAccount.from_connection_string(azure_account)
        lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "60"}
        name = f"far/{far.partner.root}/leased.csv"
        answer = account.request("PUT", name, query={"comp": "lease"}, headers=lease)
        assert answer.status == 201

        async def replaced(content: bytes) -> Entry:
            return (await write(place, "leased.csv", content, overwrite=Overwrite.REPLACE)).entry

        for refused in (place.delete(entry), replaced(b"y"), replaced(bytes(6 << 20))):
            with pytest.raises(PlaceError, match="has a lease of another client") as failure:
                await refused
            assert type(failure.value) is PlaceError
        assert (await place.stat("leased.csv")).size == 1


@pytest.mark.parametrize("kind", ["azure", "s3"])
async def test_a_container_that_is_not_there_is_named(
    azure_account: str, aws_account: AwsSettings, kind: str
) -> None:
    far = azure_end(azure_account) if kind == "azure" else s3_end(aws_account)
    async with far.open(container="nosuch") as place:
        for refused in (place.list("*", 5), write(place, "a.csv", b"x")):
            with pytest.raises(PlaceError, match="no container or bucket 'nosuch'"):
                await refused
