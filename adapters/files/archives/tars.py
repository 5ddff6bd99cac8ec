"""Tar archives, read from front to back."""

import tarfile
from collections.abc import Iterator
from typing import Any, Final, Protocol

from adapters.ports import UnreadableDocument
from domain.transfers.archive_names import ArchiveNames

_BLOCK: Final = 1 << 18
_PIECE: Final = 1 << 20
_EXTENDED: Final = frozenset(
    {
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    }
)
_EXTENDED_BYTES: Final = 1 << 20
"""Of a header that is held in memory; names are shorter."""
_MAGIC_AT: Final = 257
_HEADER: Final = 512


class ReadBytes(Protocol):
    """A file of which no more than this is needed."""

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes."""
        ...


class _Header(tarfile.TarInfo):
    """A header; one that would fill the memory is refused before it is read."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> "_Header":
        try:
            return super().fromtarfile(tarfile)
        except _END:
            # The library takes any end for one; only this is how an archive ends.
            tarfile.ended = True  # type: ignore[attr-defined]
            raise

    def _proc_member(self, tarfile: tarfile.TarFile) -> Any:
        if self.type in _EXTENDED and self.size > _EXTENDED_BYTES:
            raise UnreadableDocument("a header in it is too long, as a bomb's is")
        return super()._proc_member(tarfile)  # type: ignore[misc]


_END: Any = tarfile.EOFHeaderError  # type: ignore[attr-defined]


def is_tar(head: bytes) -> bool:
    """Whether a file begins as a tar archive does."""
    if head[_MAGIC_AT : _MAGIC_AT + 5] == b"ustar":
        return True
    try:
        tarfile.TarInfo.frombuf(head[:_HEADER], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def members(file: ReadBytes, names: ArchiveNames) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The files, each to be read to its end before the next.

    Raises:
        UnreadableDocument: It is damaged or cut off, holds more than files and folders, or
            another archive follows it.
    """
    try:
        with _opened(file) as archive:
            while (member := archive.next()) is not None:
                _forget(archive)
                if member.isdir():
                    continue
                raw = member.name.encode("utf-8", "surrogateescape")
                name = names.taken(raw, is_utf8="path" in member.pax_headers)
                _require_file(member, name)
                yield name, _content(archive, member)
            if not getattr(archive, "ended", False):
                raise _damaged()
            _require_last(archive.fileobj)
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise _damaged() from error


def _opened(file: Any) -> tarfile.TarFile:
    """Only `read` of the file is called; the library's types ask for more."""
    return tarfile.open(
        fileobj=file,
        mode="r|",
        tarinfo=_Header,
        bufsize=_BLOCK,
        encoding="utf-8",
        errors="surrogateescape",
    )


def _forget(archive: Any) -> None:
    """The library keeps every header that it has read."""
    archive.members.clear()


def _require_file(member: tarfile.TarInfo, name: str) -> None:
    if member.issym() or member.islnk():
        raise UnreadableDocument(f"{name!r} in it is a link; links are not followed")
    if member.issparse():
        raise UnreadableDocument(f"{name!r} in it is a sparse file; have it archived as a whole")
    if not member.isreg():
        raise UnreadableDocument(f"{name!r} in it is a device or of an unknown kind, and no file")


def _require_last(rest: Any) -> None:
    """Refuse archives that were put one behind the other: only files of the first would be read.

    Reading to the end also shows whether a compressed one is whole.
    """
    while blocks := rest.read(_BLOCK):
        for start in range(0, len(blocks), _HEADER):
            block = blocks[start : start + _HEADER]
            if any(block) and is_tar(block):
                raise UnreadableDocument(
                    "another tar archive follows its end; send each of them by itself"
                )


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    reader = archive.extractfile(member)
    assert reader is not None, "it is a file"
    size = 0
    try:
        while piece := reader.read(_PIECE):
            size += len(piece)
            yield piece
    except tarfile.TarError as error:
        raise _damaged() from error
    if size != member.size:
        raise _damaged()


def _damaged() -> UnreadableDocument:
    return UnreadableDocument("it is a damaged tar archive, or cut off")
