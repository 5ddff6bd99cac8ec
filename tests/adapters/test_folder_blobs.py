"""Blobs in a folder: what no other store has."""

import asyncio
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from adapters.files.blobs import FolderBlobs
from adapters.ports.errors import PortError, Unavailable
from tests.support.blobs import SMALL, arriving, folder_blobs, make_file
from workflows.shared.dependencies import Dependency


async def test_a_folder_that_cannot_be_written_to_fails_its_probe(tmp_path: Path) -> None:
    (tmp_path / "container").write_text("no folder")
    with pytest.raises(Unavailable) as down:
        await FolderBlobs(tmp_path / "container").probe()
    assert down.value.dependency is Dependency.BLOB_STORE


async def test_an_exception_of_progress_ends_the_download(tmp_path: Path) -> None:
    blobs = folder_blobs(tmp_path)
    await blobs.upload(make_file(tmp_path, bytes(24 << 20)), "a")
    target = tmp_path / "target"

    def refuse(written: int) -> None:
        raise ValueError(f"{written} bytes are too many")

    with pytest.raises(ValueError, match="8388608 bytes are too many"):
        await blobs.download("a", target, refuse)
    assert target.stat().st_size < 9 << 20


async def test_a_read_that_is_cancelled_while_it_begins_leaves_no_file_open(tmp_path: Path) -> None:
    opened: list[BinaryIO] = []
    begun, release = threading.Event(), threading.Event()

    class Slow(FolderBlobs):
        def _open(self, name: str) -> BinaryIO:
            opened.append(super()._open(name))
            begun.set()
            release.wait()
            return opened[0]

    await folder_blobs(tmp_path).upload(make_file(tmp_path, SMALL), "a")
    reading = asyncio.ensure_future(anext(Slow(tmp_path / "container").read("a")))
    await asyncio.to_thread(begun.wait)
    reading.cancel()
    await asyncio.sleep(0)
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert opened[0].closed


async def test_a_folder_that_is_gone_is_an_outage_and_no_missing_document(tmp_path: Path) -> None:
    blobs = folder_blobs(tmp_path)
    await blobs.upload(make_file(tmp_path, SMALL), "a")
    (tmp_path / "container").rename(tmp_path / "not mounted")
    for attempt in (
        blobs.stat("a"),
        blobs.download("a", tmp_path / "target"),
        blobs.upload(make_file(tmp_path, SMALL), "b"),
        blobs.write("b", arriving(SMALL, 7)),
        blobs.copy("a", "b"),
        blobs.delete("a"),
        blobs.probe(),
    ):
        with pytest.raises(Unavailable, match="is missing") as down:
            await attempt
        assert down.value.dependency is Dependency.BLOB_STORE
    assert not (tmp_path / "container").exists()


async def test_a_full_disk_of_the_reader_is_not_the_blob_store(tmp_path: Path) -> None:
    blobs = folder_blobs(tmp_path)
    await blobs.upload(make_file(tmp_path, SMALL), "a")
    # Linux has a file that is always full.
    with pytest.raises(OSError, match="No space left"):
        await blobs.download("a", Path("/dev/full"))


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "a//b", "", "a\\b"])
async def test_no_name_leaves_the_folder(tmp_path: Path, name: str) -> None:
    blobs = folder_blobs(tmp_path)
    with pytest.raises(PortError, match="not a blob name"):
        await blobs.upload(make_file(tmp_path, SMALL), name)
    with pytest.raises(PortError, match="not a blob name"):
        await blobs.download(name, tmp_path / "target")
    with pytest.raises(PortError, match="not a blob name"):
        await blobs.delete(name)


async def test_links_are_not_followed(tmp_path: Path) -> None:
    container, outside = tmp_path / "container", tmp_path / "outside"
    container.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (container / "folder").symlink_to(outside)
    (container / "file").symlink_to(outside / "secret")
    blobs = FolderBlobs(container)
    for name in ("folder/secret", "file"):
        with pytest.raises(PortError, match="symbolic link"):
            await blobs.download(name, tmp_path / "target")
        with pytest.raises(PortError, match="symbolic link"):
            await blobs.upload(make_file(tmp_path, SMALL), name)
        with pytest.raises(PortError, match="symbolic link"):
            await blobs.delete(name)
    assert (outside / "secret").read_text() == "secret"


async def test_a_failed_upload_leaves_nothing(tmp_path: Path) -> None:
    blobs = folder_blobs(tmp_path)
    await blobs.upload(make_file(tmp_path, SMALL), "a")
    with pytest.raises(PortError):
        await blobs.upload(make_file(tmp_path, SMALL), "a/b")
    with pytest.raises(FileExistsError):
        await blobs.upload(make_file(tmp_path, SMALL), "a", overwrite=False)
    with pytest.raises(PortError):
        await blobs.write("a/b", arriving(SMALL, 7))
    with pytest.raises(FileExistsError):
        await blobs.write("a", arriving(SMALL, 7))
    assert files_of(tmp_path / "container") == {"a"}


async def test_what_a_killed_writer_has_left_is_removed_by_a_later_one(tmp_path: Path) -> None:
    blobs = folder_blobs(tmp_path)
    parts = tmp_path / "container" / ".parts"
    parts.mkdir()
    left, young, used = (parts / f"{digit * 32}.part" for digit in "abc")
    other = parts / "notes.txt"
    for path in (left, young, used, other):
        path.write_bytes(SMALL)
    for path in (left, used, other):
        os.utime(path, (1, 1))
    with used.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        await blobs.upload(make_file(tmp_path, SMALL), "a")
    assert files_of(tmp_path / "container") == {"a", young.name, used.name, other.name}


def files_of(container: Path) -> set[str]:
    return {path.name for path in container.rglob("*") if path.is_file()}


async def test_a_listing_leaves_out_what_others_remove_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = FolderBlobs(tmp_path)
    (tmp_path / "staging").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "staging" / name).write_bytes(b"1")
    walk = os.walk

    def walk_while_others_remove(folder: Path) -> Iterator[Any]:
        yield from walk(folder)
        (tmp_path / "staging" / "b").unlink(missing_ok=True)

    monkeypatch.setattr(os, "walk", walk_while_others_remove)
    assert [each.name for each in await blobs.list("staging/", 2)] == ["staging/a", "staging/c"]
