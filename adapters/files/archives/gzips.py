"""Gzip files: members one after the other (RFC 1952)."""

import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

from adapters.ports import UnreadableDocument

WBITS: Final = 16 + zlib.MAX_WBITS
_BLOCK: Final = 1 << 18
_PIECE: Final = 1 << 20


def unzipped(file: BinaryIO) -> Iterator[bytes]:
    """The content, in pieces of 1 MB at most.

    Raises:
        UnreadableDocument: It is damaged, cut off, or followed by other bytes.
    """
    pending = file.read(_BLOCK)
    if not pending:
        raise _damaged()
    while pending:
        inflate = zlib.decompressobj(WBITS)
        while not inflate.eof:
            pending = pending or file.read(_BLOCK)
            if not pending:
                raise _damaged()
            try:
                piece = inflate.decompress(pending, _PIECE)
            except zlib.error as error:
                raise _damaged() from error
            pending = inflate.unconsumed_tail
            if piece:
                yield piece
        pending = _after_padding(inflate.unused_data, file)


def _after_padding(pending: bytes, file: BinaryIO) -> bytes:
    """What follows a member, without the zeros that tapes and some programs add."""
    while not (rest := pending.lstrip(b"\0")):
        pending = file.read(_BLOCK)
        if not pending:
            return b""
    return rest


def _damaged() -> UnreadableDocument:
    return UnreadableDocument("it is a damaged gzip file, or cut off")
