"""Files inside Office packages, and pictures, whose words are not read."""

import io
import re
import struct
from typing import Final

from adapters.files import limits
from adapters.files.compound import COMPOUND_HEAD, DamagedCompound, stream_of
from adapters.files.package import Package
from adapters.files.texts.findings import Findings
from adapters.files.texts.kinds import NO_OCR
from adapters.ports import UnreadableDocument

_FILES: Final = "/embeddings/"
_OPEN_OBJECT: Final = re.compile(r"/object [^/]*")
"""An object of another program in an OpenDocument file."""
_PICTURES: Final = ("/media/", "/pictures/")
NATIVE: Final = "\x01ole10native"
"""The stream that holds what the Object Packager packed, or what another program has written."""
WHOLE_FILES: Final = ("contents", "package")
"""Streams that are the file of the program that made the object."""
_SIGNATURE: Final = 2


def take_out_embedded(package: Package, into: Findings) -> None:
    """Keep the files that are embedded, and note how many pictures there are."""
    pictures = 0
    for name in package.names():
        folded = f"/{name.lower()}"
        if _FILES in folded or _OPEN_OBJECT.fullmatch(folded):
            _keep(package, name, into)
        pictures += any(folder in folded for folder in _PICTURES)
    if pictures:
        into.note(f"pictures inside: {pictures:,}; {NO_OCR}")


def _keep(package: Package, name: str, into: Findings) -> None:
    try:
        content = package.read(name, limits.ATTACHED_BYTES)
        keep_object(name.rpartition("/")[2], content, into)
    except UnreadableDocument as error:
        into.note(f"an embedded file was not taken out: {error}")


def keep_object(name: str, content: bytes, into: Findings) -> None:
    """Keep an embedded file, without the wrapping in which Office holds those of other programs.

    Source: [MS-OLEDS] 2.3.6; the packages of the Object Packager are described nowhere.
    """
    if content.startswith(COMPOUND_HEAD):
        if wrapped := _stream(content, NATIVE):
            keep_native(name, wrapped, into)
            return
        if whole := _stream(content, *WHOLE_FILES):
            into.keep(name, whole)
            return
    _keep_unpacked(name, content, into)


def keep_native(name: str, wrapped: bytes, into: Findings) -> None:
    """Keep what the stream `NATIVE` holds."""
    # The length of all of it comes first.
    _keep_unpacked(name, wrapped[4:], into)


def _keep_unpacked(name: str, content: bytes, into: Findings) -> None:
    packed = _packed(content)
    if packed is None:
        into.keep(name, content)
    else:
        into.keep(*packed)


def _stream(content: bytes, *names: str) -> bytes:
    try:
        return b"".join(stream_of(io.BytesIO(content), names))
    except DamagedCompound:
        return b""


def _packed(content: bytes) -> tuple[str, bytes] | None:
    """Name and bytes of a file that the Object Packager packed; None: it is none of these."""
    try:
        (signature,) = struct.unpack_from("<H", content)
        if signature != _SIGNATURE:
            return None
        label, place = _text(content, 2)
        _, place = _text(content, place)
        (length,) = struct.unpack_from("<L", content, place + 4)
        place += 8 + length
        (size,) = struct.unpack_from("<L", content, place)
    except (struct.error, ValueError):
        return None
    packed = content[place + 4 : place + 4 + size]
    return (label, packed) if len(packed) == size else None


def _text(content: bytes, place: int) -> tuple[str, int]:
    end = content.index(b"\0", place)
    return content[place:end].decode("cp1252", "replace"), end + 1
