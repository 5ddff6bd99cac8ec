"""Blobs in a local folder: the container of the embedded stack."""

import asyncio
import fcntl
import hashlib
import os
import re
import time
import uuid
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pydantic import TypeAdapter, ValidationError

from adapters.object_blobs import at_least, refuse_other
from adapters.ports.errors import BlobNotFound, PortError, Unavailable
from adapters.threads import to_end
from workflows.shared.contracts import BlobName, BlobRef, problem_text
from workflows.shared.dependencies import Dependency

_BLOCK = 1 << 20
_PROGRESS_STEP = 8 << 20
_PARTS = ".parts"
"""Folder of files that are being written."""
_PART = re.compile(r"[0-9a-f]{32}\.part")
_LEFT_SECONDS = 60
"""After which a file that no process writes to was left behind by one that was killed."""
_SWEEP_SECONDS = 10.0
_NAME: TypeAdapter[str] = TypeAdapter(BlobName)


class FolderBlobs:
    """Each blob is a file below one folder.

    New bytes are written to a file of their own and renamed onto the blob, so that readers see the
    old or the new one; what a killed process has left of that is removed by later writers. Names
    that lead out of the folder, by '..' or by a symbolic link, are refused.
    `delete` with an etag looks and then deletes: another process may change the blob between.
    """

    def __init__(self, folder: Path) -> None:
        """Use `folder`, which has to be there; messages name it, for operators.

        One that is missing is an outage: the disk of another machine that is not mounted would
        otherwise look as if all documents were gone.
        """
        self._folder = folder.resolve()
        self._sweeps_at = 0.0

    async def stat(self, name: str) -> BlobRef:
        """Size and etag."""
        return await asyncio.to_thread(self._stat, name)

    async def list(self, prefix: str, most: int) -> Sequence[BlobRef]:
        """Blobs of a folder, by name."""
        return await asyncio.to_thread(self._list, prefix, most)

    async def download(
        self, name: str, target: Path, progress: Callable[[int], None] | None = None
    ) -> BlobRef:
        """Copy a blob into a new file."""
        loop = asyncio.get_running_loop()

        async def reported(written: int) -> None:
            if progress is not None:
                progress(written)

        def report(written: int) -> None:
            asyncio.run_coroutine_threadsafe(reported(written), loop).result()

        return await to_end(self._download, name, target, report)

    async def read(
        self, name: str, *, start: int = 0, length: int | None = None, etag: str | None = None
    ) -> AsyncGenerator[bytes]:
        """Read a blob block by block."""
        with ExitStack() as opened:
            # If the reader is cancelled, the thread still ends before the file is closed.
            blocks, block = await to_end(self._begun, opened, name, start, etag)
            while block:
                if length is not None:
                    block, length = block[:length], length - len(block)
                yield block
                if len(block) < _BLOCK or length == 0:
                    return
                block = await to_end(next, blocks, b"")

    def _begun(
        self, opened: ExitStack, name: str, start: int, etag: str | None
    ) -> tuple[Iterator[bytes], bytes]:
        """The blocks of a blob behind the first one, and that: of most blobs that is all."""
        file = opened.enter_context(self._open(name))
        if etag is not None:
            refuse_other(name, _reference(name, file).etag, etag)
        file.seek(start)
        blocks = self._blocks(file, name)
        return blocks, next(blocks, b"")

    async def upload(self, source: Path, name: str, *, overwrite: bool = True) -> BlobRef:
        """Copy a file into a blob."""
        return await asyncio.to_thread(self._upload, source, name, overwrite)

    async def write(
        self, name: str, chunks: AsyncIterator[bytes], *, hashed: bool = True
    ) -> BlobRef:
        """Write bytes to a file as they arrive, and rename it when all are there."""
        blocks = at_least(chunks, _BLOCK)
        first = await anext(blocks, b"")
        if len(first) < _BLOCK:
            # All there is: one thread does everything.
            return await asyncio.to_thread(self._store, (first,), name, overwrite=False)
        path = self._path(name)
        digest = hashlib.sha256()
        take_in = digest.update if hashed else None
        with self._translated(name, overwrite=False):
            sink = await asyncio.to_thread(self._new_part)
        try:
            block = first
            while block:
                with self._translated(name, overwrite=False):
                    await asyncio.to_thread(_append, sink, block, take_in)
                block = await anext(blocks, b"")
            with self._translated(name, overwrite=False):
                sha256 = digest.hexdigest() if hashed else None
                return await asyncio.to_thread(
                    self._publish, sink, path, name, sha256, overwrite=False
                )
        finally:
            await asyncio.to_thread(_discard, sink)

    async def put(self, name: str, content: bytes) -> BlobRef:
        """Write a short blob."""
        return await asyncio.to_thread(self._store, (content,), name, overwrite=True)

    async def remove(self, beginning: str) -> int:
        """Delete blobs."""
        return await asyncio.to_thread(self._remove, beginning)

    async def copy(self, source: str, target: str) -> BlobRef:
        """Copy a blob onto another."""
        return await asyncio.to_thread(self._copy, source, target)

    async def delete(self, name: str, *, etag: str | None = None) -> bool:
        """Delete a blob."""
        return await asyncio.to_thread(self._delete, name, etag)

    async def probe(self) -> None:
        """Write and remove a file."""
        try:
            await asyncio.to_thread(self._write_and_remove)
        except OSError as error:
            raise self._unavailable("no file can be written", error) from error

    def _require_folder(self) -> None:
        if not self._folder.is_dir():
            raise Unavailable(f"{self._place}, is missing", Dependency.BLOB_STORE)

    @property
    def _place(self) -> str:
        return f"the folder of blobs, {self._folder} (DOCFLOW_BLOB_FOLDER)"

    def _unavailable(self, what: str, error: OSError) -> Unavailable:
        text = f"{self._place}: {what}: {error.strerror}"
        return Unavailable(text, Dependency.BLOB_STORE)

    def _blocks(self, blob: BinaryIO, name: str) -> Iterator[bytes]:
        """The bytes of a blob; where it cannot be read is no fault of the file that they go to."""
        try:
            yield from _file_blocks(blob)
        except OSError as error:
            raise self._unavailable(f"blob {name!r} cannot be fetched", error) from error

    def _write_and_remove(self) -> None:
        part = self._new_part()
        try:
            part.write(bytes(_BLOCK))
            part.flush()
        finally:
            _discard(part)

    def _path(self, name: str) -> Path:
        try:
            path = self._folder / _NAME.validate_python(name)
        except ValidationError as error:
            raise PortError(
                f"{name!r} is not a blob name: {problem_text(error.errors()[0])}"
            ) from error
        if _has_link(self._folder, name):
            raise PortError(f"blob {name!r} leads through a symbolic link, which is not followed")
        return path

    def _open(self, name: str) -> BinaryIO:
        path = self._path(name)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            return os.fdopen(descriptor, "rb")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            self._require_folder()
            raise BlobNotFound(f"there is no blob {name!r}") from error
        except OSError as error:
            raise self._unavailable(f"blob {name!r} cannot be read", error) from error

    def _stat(self, name: str) -> BlobRef:
        with self._open(name) as file:
            return _reference(name, file)

    def _list(self, prefix: str, most: int) -> Sequence[BlobRef]:
        folder = self._path(prefix.rstrip("/"))
        self._require_folder()
        names = sorted(
            str((Path(place) / file).relative_to(self._folder))
            for place, _, files in os.walk(folder)
            for file in files
            if not (Path(place) / file).is_symlink()
        )
        found: list[BlobRef] = []
        for name in names:
            if len(found) == most:
                break
            # Others remove theirs meanwhile.
            with suppress(BlobNotFound):
                found.append(self._stat(name))
        return found

    def _download(self, name: str, target: Path, report: Callable[[int], None]) -> BlobRef:
        with self._open(name) as file, target.open("wb") as sink:
            return _reference(name, file, _pour(self._blocks(file, name), sink, report))

    def _upload(self, source: Path, name: str, overwrite: bool) -> BlobRef:
        with source.open("rb") as file:
            return self._store(_file_blocks(file), name, overwrite=overwrite)

    def _copy(self, source: str, target: str) -> BlobRef:
        with self._open(source) as file:
            return self._store(_file_blocks(file), target, overwrite=True)

    def _store(self, blocks: Iterable[bytes], name: str, *, overwrite: bool) -> BlobRef:
        path = self._path(name)
        with self._translated(name, overwrite=overwrite):
            sink = self._new_part()
            try:
                digest = _pour(blocks, sink, lambda written: None)
                return self._publish(sink, path, name, digest, overwrite=overwrite)
            finally:
                _discard(sink)

    def _new_part(self) -> BinaryIO:
        """A file of one's own, locked for as long as it is open: so others see that it is used."""
        self._require_folder()
        folder = self._folder / _PARTS
        self._sweep(folder)
        part = (folder / f"{uuid.uuid4().hex}.part").open("xb")
        # Where a file system has no locks, nothing that is left behind is removed.
        with suppress(OSError):
            fcntl.flock(part, fcntl.LOCK_EX)
        return part

    def _sweep(self, folder: Path) -> None:
        """Make the folder of parts, and remove what is left there, once in a while: to look at the
        parts of all other writers costs more than a short blob."""
        now = time.monotonic()
        if now < self._sweeps_at and folder.is_dir():
            return
        self._sweeps_at = now + _SWEEP_SECONDS
        folder.mkdir(exist_ok=True)
        for left in folder.iterdir():
            _remove_left(left)

    def _publish(
        self, sink: BinaryIO, path: Path, name: str, digest: str | None, *, overwrite: bool
    ) -> BlobRef:
        """Give a file that is written its name."""
        sink.flush()
        os.fsync(sink.fileno())
        reference = _reference(name, sink, digest)
        part = Path(sink.name)
        for parent in reversed(path.relative_to(self._folder).parents[:-1]):
            (self._folder / parent).mkdir(exist_ok=True)
        if overwrite:
            part.replace(path)
        else:
            os.link(part, path)
        return reference

    @contextmanager
    def _translated(self, name: str, *, overwrite: bool) -> Generator[None]:
        try:
            yield
        except FileExistsError as error:
            if overwrite or not self._path(name).is_file():
                raise PortError(f"blob {name!r}: a part of its name is a blob already") from error
            raise FileExistsError(f"there is a blob {name!r} already") from error
        except (NotADirectoryError, IsADirectoryError) as error:
            raise PortError(f"blob {name!r}: a part of its name is a blob already") from error
        except OSError as error:
            raise self._unavailable(f"blob {name!r} cannot be written", error) from error

    def _remove(self, beginning: str) -> int:
        folder, _, start = beginning.rpartition("/")
        place = self._path(folder)
        self._require_folder()
        try:
            with os.scandir(place) as scanned:
                own = [each.name for each in scanned if each.name.startswith(start)]
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise self._unavailable(f"blobs of {folder!r} cannot be listed", error) from error
        return sum(self._delete(f"{folder}/{name}", None) for name in own)

    def _delete(self, name: str, etag: str | None) -> bool:
        path = self._path(name)
        try:
            if etag is not None and self._stat(name).etag != etag:
                return False
            path.unlink()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, BlobNotFound):
            self._require_folder()
            return False
        except OSError as error:
            raise self._unavailable(f"blob {name!r} cannot be deleted", error) from error
        return True


def _has_link(folder: Path, name: str) -> bool:
    """Whether a path below a folder leads through a symbolic link.

    The folder itself is resolved already; to resolve all of a path would ask for each part of that,
    too, with every blob.
    """
    place = str(folder)
    for part in name.split("/"):
        place = f"{place}/{part}"
        if os.path.islink(place):
            return True
    return False


def _discard(part: BinaryIO) -> None:
    """Close a file, and remove it unless it has got the name of its blob."""
    with part:
        Path(part.name).unlink(missing_ok=True)


def _remove_left(part: Path) -> None:
    """Remove a file that a killed process has left behind."""
    # Locked, removed by another process, or without locks.
    with suppress(OSError):
        is_new = time.time() - part.stat().st_mtime < _LEFT_SECONDS
        if is_new or not _PART.fullmatch(part.name):
            return
        with part.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()


def _file_blocks(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(_BLOCK):
        yield block


def _pour(source: Iterable[bytes], sink: BinaryIO, report: Callable[[int], None]) -> str:
    """Copy all bytes; their sha256."""
    digest = hashlib.sha256()
    written = reported = 0
    for block in source:
        sink.write(block)
        digest.update(block)
        written += len(block)
        if written - reported >= _PROGRESS_STEP:
            report(written)
            reported = written
    report(written)
    return digest.hexdigest()


def _append(sink: BinaryIO, block: bytes, take_in: Callable[[bytes], None] | None) -> None:
    sink.write(block)
    if take_in is not None:
        take_in(block)


def _reference(name: str, file: BinaryIO, sha256: str | None = None) -> BlobRef:
    """The etag changes with every upload, since each is a new file."""
    status = os.fstat(file.fileno())
    etag = f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"
    return BlobRef(name=name, size=status.st_size, sha256=sha256, etag=etag)
