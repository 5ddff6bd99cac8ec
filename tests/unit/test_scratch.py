"""Files while they are read: what a full disk means."""

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from xlsxwriter.exceptions import FileCreateError

from activities.shared.scratch import fetched, scratch_folder, sweep
from adapters.ports.errors import Unavailable
from tests.support.memory.blobs import MemoryBlobs
from workflows.shared.contracts import BlobRef
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import RuleViolation

MEGABYTE = 1 << 20


class FullDisk(MemoryBlobs):
    """Blobs whose bytes do not fit on the scratch disk."""

    async def download(
        self, name: str, target: Path, progress: Callable[[int], None] | None = None
    ) -> BlobRef:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def _stored(blobs: MemoryBlobs, tmp_path: Path) -> MemoryBlobs:
    file = tmp_path / "upload"
    file.write_bytes(bytes(3 * MEGABYTE))
    await blobs.upload(file, "uploads/a.csv")
    return blobs


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_waited_for(tmp_path: Path, number: int) -> None:
    with pytest.raises(Unavailable) as full, scratch_folder(tmp_path):
        raise OSError(number, os.strerror(number))
    assert full.value.dependency is Dependency.SCRATCH_DISK


def test_a_disk_that_only_reads_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(**options: Any) -> str:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(tmp_path))

    monkeypatch.setattr(tempfile, "mkdtemp", read_only)
    with pytest.raises(Unavailable) as found, scratch_folder(tmp_path):
        pytest.fail("there is no folder")
    assert str(found.value) == "no file can be made on the scratch disk: Read-only file system"
    assert found.value.dependency is Dependency.SCRATCH_DISK
    assert not found.value.misconfigured


def test_a_folder_that_is_none_is_a_wrong_setting(tmp_path: Path) -> None:
    (file := tmp_path / "scratch").touch()
    with pytest.raises(Unavailable, match="no file can be made") as found, scratch_folder(file):
        pytest.fail("there is no folder")
    assert found.value.dependency is Dependency.SCRATCH_DISK
    assert found.value.misconfigured


def test_a_report_that_does_not_fit_is_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as full, scratch_folder(tmp_path):
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError as error:
            # As XlsxWriter wraps it.
            raise FileCreateError(error)  # noqa: B904
    assert full.value.dependency is Dependency.SCRATCH_DISK


def test_what_is_decided_about_a_document_stays_decided(tmp_path: Path) -> None:
    with pytest.raises(RuleViolation), scratch_folder(tmp_path):
        raise RuleViolation("larger than the disk") from OSError(errno.ENOSPC, "full")


def test_a_file_that_is_always_full_is_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(Unavailable), scratch_folder(tmp_path), open("/dev/full", "wb") as file:
        file.write(bytes(MEGABYTE))


def test_a_temporary_database_that_does_not_fit_is_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as full, scratch_folder(tmp_path) as folder:
        database = sqlite3.connect(folder / "keys")
        try:
            database.execute("PRAGMA max_page_count = 2")
            database.execute("CREATE TABLE keys (key BLOB)")
            database.execute("INSERT INTO keys VALUES (zeroblob(1000000))")
        finally:
            database.close()
    assert full.value.dependency is Dependency.SCRATCH_DISK


def test_other_failures_stay_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), scratch_folder(tmp_path):
        raise PermissionError(errno.EACCES, "no")
    with (
        pytest.raises(sqlite3.OperationalError),
        scratch_folder(tmp_path),
        closing(sqlite3.connect(":memory:")) as database,
    ):
        database.execute("SELECT nothing FROM nowhere")


async def test_the_wait_is_for_as_much_room_as_the_file_needs(tmp_path: Path) -> None:
    blobs = await _stored(FullDisk(), tmp_path)
    with pytest.raises(Unavailable) as full:
        async with fetched(blobs, "uploads/a.csv", tmp_path / "scratch"):
            pass
    assert (full.value.dependency, full.value.room) == (Dependency.SCRATCH_DISK, 3 * MEGABYTE)
    assert list((tmp_path / "scratch").iterdir()) == []


async def test_a_file_larger_than_the_disk_is_refused_with_both_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = await _stored(FullDisk(), tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=2 * MEGABYTE))
    with pytest.raises(RuleViolation) as refused:
        async with fetched(blobs, "uploads/a.csv", tmp_path / "scratch"):
            pass
    assert str(refused.value) == (
        "uploads/a.csv has 3 MB, and the whole scratch disk has 2 MB; "
        "split the file, or have the disk enlarged"
    )


def test_only_old_folders_of_an_earlier_release_are_swept(tmp_path: Path) -> None:
    for name in ("docflow-old", "docflow-new", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / "docflow-link").symlink_to(tmp_path / "other")
    ago = time.time() - 100
    for name in ("docflow-old", "other"):
        os.utime(tmp_path / name, (ago, ago))
    assert sweep(tmp_path, older_than=50) == 1
    left = ["docflow-link", "docflow-new", "other"]
    assert sorted(p.name for p in tmp_path.iterdir()) == left
    assert sweep(tmp_path / "missing") == 0


HOLD = """
import sys, time
from pathlib import Path
from activities.shared.scratch import scratch_folder
with scratch_folder(Path(sys.argv[1])) as folder:
    (folder / "document").touch()
    print(folder, flush=True)
    time.sleep(600)
"""


def test_a_folder_is_swept_when_its_worker_was_killed_and_never_before(tmp_path: Path) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert worker.stdout is not None
        theirs = Path(worker.stdout.readline().strip())
        with scratch_folder(tmp_path) as ours:
            for folder in (ours, theirs):
                os.utime(folder, (0, 0))
            assert sweep(tmp_path, older_than=0) == 0
            worker.send_signal(signal.SIGSTOP)
            assert sweep(tmp_path, older_than=0) == 0
            assert (theirs / "document").exists()
            worker.kill()
            worker.wait()
            assert sweep(tmp_path) == 1
            assert list(tmp_path.iterdir()) == [ours]
        assert list(tmp_path.iterdir()) == []
    finally:
        worker.kill()
        worker.communicate()


def test_a_folder_that_a_sweep_finds_before_it_is_held_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, made = tempfile.mkdtemp, list[str]()

    def swept_at_once(**options: Any) -> str:
        made.append(make(**options))
        if len(made) == 1:
            assert sweep(tmp_path) == 1
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", swept_at_once)
    with scratch_folder(tmp_path) as folder:
        assert str(folder) == made[1]
        assert folder.is_dir()
