"""Office packages: zip files read with suspicion, and their XML as a stream."""

import os
import struct
import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NoReturn
from xml.parsers import expat

from adapters.files import limits
from adapters.files.faults import DAMAGE, is_of_disk
from adapters.ports.errors import UnreadableDocument

_BLOCK = 1 << 17
_END = b"PK\x05\x06"
_END_SIZE = 22
_END_64_LOCATOR = b"PK\x06\x07"
_END_64_LOCATOR_SIZE = 20
_END_64 = b"PK\x06\x06"
_LONGEST_COMMENT = 0xFFFF
_NAMES_IN_UTF8 = 0x800


def damaged(what: str) -> str:
    """The message for a file that cannot be read to its end."""
    return f"the {what} is damaged or cut off; save it again and upload the new file"


DAMAGED = damaged("workbook")


class Package:
    """The parts of a zip file, by name."""

    def __init__(
        self,
        archive: zipfile.ZipFile,
        what: str,
        free_bytes: int = limits.PACKAGE_RATIO_FREE_BYTES,
    ) -> None:
        """Check the directory: number of parts, unpacked sizes, encryption.

        Args:
            archive: The file, open.
            what: What people call it.
            free_bytes: If it unpacks to no more, it may have any ratio.

        Raises:
            UnreadableDocument: The package unpacks to far more than it holds, or is encrypted.
        """
        self._archive = archive
        self._what = what
        parts = archive.infolist()
        if len(parts) > limits.PACKAGE_PARTS:
            raise UnreadableDocument(
                f"the package holds {len(parts):,} parts; at most {limits.PACKAGE_PARTS:,} are read"
            )
        packed = sum(part.compress_size for part in parts)
        unpacked = sum(part.file_size for part in parts)
        if unpacked > free_bytes and unpacked > limits.PACKAGE_RATIO * max(packed, 1):
            raise UnreadableDocument(
                f"the package unpacks to {unpacked // max(packed, 1):,} times its size"
                f" ({unpacked:,} bytes), as only a zip bomb does; it was not unpacked"
            )
        if any(part.flag_bits & 1 for part in parts):
            raise UnreadableDocument("the package is encrypted; remove its password and send again")
        self._parts = {part.filename.lower(): part for part in parts}
        self._files = [part for part in parts if not part.is_dir()]
        self.names_encoding: str | None = None
        """Which the names of `files` were read in, once they are asked for; None: they say it."""
        self.unpacked = unpacked
        """Bytes, by the directory."""

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._parts

    def has(self, prefix: str) -> bool:
        """Whether a part is called so, or lies in a folder of that name."""
        return any(name.startswith(prefix) for name in self._parts)

    def names(self) -> list[str]:
        """Names of the parts, as they are written."""
        return [part.filename for part in self._parts.values()]

    def files(self) -> Iterator[tuple[str, int, Iterator[bytes]]]:
        """All files, also those of the same name: path, bytes when unpacked, and their bytes.

        The bytes raise `UnreadableDocument` where a file is damaged, or larger than it says.
        """
        for info, name in zip(self._files, self._names(), strict=True):
            yield name, info.file_size, self._unpacked(info, info.file_size)

    def _names(self) -> list[str]:
        """Paths of the files; the names that say no encoding have one together."""
        unsaid = [info for info in self._files if not info.flag_bits & _NAMES_IN_UTF8]
        raw = b"\n".join(info.orig_filename.encode("cp437", "replace") for info in unsaid)
        if not raw.isascii():
            # It takes memory that most processes have no use for.
            from adapters.files.encodings import name_encoding

            self.names_encoding = name_encoding(raw)
        encoding = self.names_encoding or "cp437"
        return [
            info.filename
            if info.flag_bits & _NAMES_IN_UTF8
            else info.filename.encode("cp437", "replace").decode(encoding, "replace")
            for info in self._files
        ]

    def size(self, name: str) -> int:
        """Bytes of a part when unpacked, by the directory."""
        return self._parts[name.lower()].file_size

    def stream(self, name: str, most: int) -> Iterator[bytes]:
        """Unpack a part block by block.

        Args:
            name: Part name, without leading slash; case does not matter.
            most: Bytes after which the part is refused, whatever the directory states.

        Raises:
            UnreadableDocument: The part is missing, damaged or too large.
        """
        info = self._parts.get(name.lower())
        if info is None:
            raise UnreadableDocument(
                f"the {self._what} lacks its part {name!r}; {damaged(self._what)}"
            )
        if info.file_size > most:
            raise self._too_large(name, most)
        yield from self._unpacked(info, most)

    def _unpacked(self, info: zipfile.ZipInfo, most: int) -> Iterator[bytes]:
        name = info.filename
        total = 0
        try:
            with self._archive.open(info) as part:
                while block := part.read(_BLOCK):
                    total += len(block)
                    if total > most:
                        raise self._too_large(name, most)
                    yield block
        except DAMAGE as error:
            if is_of_disk(error):
                raise
            raise UnreadableDocument(f"{damaged(self._what)} (part {name!r}: {error})") from error

    def read(self, name: str, most: int = limits.SMALL_PART_BYTES) -> bytes:
        """All of a part, at most `most` bytes of it."""
        return b"".join(self.stream(name, most))

    def _too_large(self, name: str, most: int) -> UnreadableDocument:
        return UnreadableDocument(
            f"part {name!r} of the {self._what} unpacks to more than {most:,} bytes;"
            f" split the {self._what}"
        )


@contextmanager
def open_package(
    path: Path, what: str = "workbook", free_bytes: int = limits.PACKAGE_RATIO_FREE_BYTES
) -> Generator[Package]:
    """Open a zip file whose directory is neither huge nor broken.

    Args:
        path: The file.
        what: What people call it.
        free_bytes: If it unpacks to no more, it may have any ratio.

    Raises:
        UnreadableDocument: It is not a complete zip file, or a hostile one.
    """
    with path.open("rb") as file, opened_zip(file, what) as archive:
        yield Package(archive, what, free_bytes)


@contextmanager
def opened_zip(file: BinaryIO, what: str) -> Generator[zipfile.ZipFile]:
    """Open a zip file whose directory is neither huge nor broken, and whole.

    Raises:
        UnreadableDocument: It is not, or its end states another number of files than it lists.
    """
    stated = _checked_directory(file, what)
    try:
        archive = zipfile.ZipFile(file)
    except UnicodeDecodeError as error:
        raise UnreadableDocument("a name in it is marked as UTF-8 and is not") from error
    except DAMAGE as error:
        if is_of_disk(error):
            raise
        raise UnreadableDocument(f"{damaged(what)} ({error})") from error
    with archive:
        listed = len(archive.infolist())
        if not all(info.filename for info in archive.infolist()):
            raise UnreadableDocument(f"{damaged(what)} (a file in it has no name)")
        # Without the records of ZIP64 old programs write the number modulo 65,536.
        if listed != stated and listed % (1 << 16) != stated:
            raise UnreadableDocument(
                f"{damaged(what)} (its end states {stated:,} files, and it lists {listed:,})"
            )
        yield archive


def _checked_directory(file: BinaryIO, what: str) -> int:
    """Refuse a huge directory before `zipfile` makes an object of each of its entries.

    Source: APPNOTE.TXT of PKWARE, 4.3.14 to 4.3.16.

    Returns:
        How many files the end of the archive states.
    """
    size = file.seek(0, os.SEEK_END)
    tail_size = min(size, _LONGEST_COMMENT + _END_SIZE + _END_64_LOCATOR_SIZE)
    file.seek(size - tail_size)
    tail = file.read(tail_size)
    end = tail.rfind(_END, 0, max(len(tail) - _END_SIZE + len(_END), 0))
    if end < 0:
        raise UnreadableDocument(damaged(what))
    stated, directory_bytes = struct.unpack_from("<HL", tail, end + 10)
    locator = end - _END_64_LOCATOR_SIZE
    if locator >= 0 and tail[locator : locator + 4] == _END_64_LOCATOR:
        (offset,) = struct.unpack_from("<Q", tail, locator + 8)
        stated, directory_bytes = _directory_64(file, min(offset, size), what)
    if directory_bytes > limits.PACKAGE_DIRECTORY_BYTES:
        raise UnreadableDocument(
            f"the package's directory takes {directory_bytes:,} bytes;"
            f" at most {limits.PACKAGE_DIRECTORY_BYTES:,} are read"
        )
    file.seek(0)
    return stated


def _directory_64(file: BinaryIO, offset: int, what: str) -> tuple[int, int]:
    """Number of files and bytes of the directory."""
    file.seek(offset)
    record = file.read(56)
    if len(record) < 56 or not record.startswith(_END_64):
        raise UnreadableDocument(damaged(what))
    return struct.unpack_from("<QQ", record, 32)


class XmlStream:
    """An expat parser that refuses what no office program writes."""

    def __init__(
        self,
        start: Callable[[str, dict[str, str]], None],
        end: Callable[[str], None],
        text: Callable[[str], None] | None = None,
        what: str = "workbook",
    ) -> None:
        """Set the handlers; names come without their namespace prefix.

        Args:
            start: Called with name and attributes of an element.
            end: Called with its name.
            text: Called with pieces of text.
            what: What people call the file.
        """
        self._what = what
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.buffer_size = 1 << 16
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype
        self.parser.XmlDeclHandler = self._declared
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        if text is not None:
            self.parser.CharacterDataHandler = text
        self._on_start = start
        self._on_end = end
        self.fed = 0
        """Bytes given to the parser so far."""
        self.depth = 0
        """Open elements; within a start handler the element itself counts."""
        self.encoding = "utf-8"
        """As declared, lower case."""

    def feed(self, data: bytes, final: bool = False) -> None:
        """Parse some more.

        Raises:
            UnreadableDocument: It is not well-formed XML, or hostile.
        """
        self.fed += len(data)
        try:
            self.parser.Parse(data, final)
        except expat.ExpatError as error:
            raise UnreadableDocument(f"{damaged(self._what)} (XML: {error})") from error
        except (LookupError, ValueError) as error:  # what an odd declared encoding raises
            raise UnreadableDocument(f"{damaged(self._what)} (XML encoding: {error})") from error
        if self.fed - max(self.parser.CurrentByteIndex, 0) > limits.XML_TOKEN_BYTES and not final:
            raise UnreadableDocument(
                f"the {self._what} holds an XML tag of more than {limits.XML_TOKEN_BYTES:,} bytes"
            )

    def _declared(self, version: str, encoding: str | None, standalone: int) -> None:
        self.encoding = (encoding or "utf-8").lower()

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > limits.XML_DEPTH:
            raise UnreadableDocument(
                f"the {self._what} nests XML elements more than {limits.XML_DEPTH} deep"
            )
        self._on_start(name if ":" not in name else name.rpartition(":")[2], attributes)

    def _end(self, name: str) -> None:
        self._on_end(name if ":" not in name else name.rpartition(":")[2])
        self.depth -= 1

    def _refuse_doctype(self, *_: object) -> NoReturn:
        raise UnreadableDocument(
            f"the {self._what} holds an XML document type, which is not read;"
            " save it again with the program that it comes from"
        )


def parse(blocks: Iterable[bytes], stream: XmlStream) -> None:
    """Parse all of a part."""
    for block in blocks:
        stream.feed(block)
    stream.feed(b"", final=True)
