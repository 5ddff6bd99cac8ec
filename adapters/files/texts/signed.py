"""Mails and other files that are signed as a whole (S/MIME): they lie within their signature.

Source: RFC 5652 5.1 and 5.2, RFC 8551 3.5.2; ITU-T X.690 8.1 (lengths).
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from adapters.files import limits
from adapters.files.texts.findings import Findings
from adapters.ports.errors import UnreadableDocument

_SIGNED: Final = bytes.fromhex("06092a864886f70d010702")
_ENCRYPTED: Final = bytes.fromhex("06092a864886f70d010703")
_WITHIN: Final = 32
"""Bytes in which the type of the content stands."""
_SEQUENCE, _OCTETS, _CONTENT, _CONSTRUCTED = 0x30, 0x04, 0xA0, 0x20
_DEPTH: Final = 16
_FIELD: Final = re.compile(rb"\s*[!-9;-~]{1,100}:")
_Part = tuple[int, int, int]
"""Tag, and where its content begins and ends."""


def is_signed(head: bytes) -> bool:
    """Whether a file is a signature, with or without what was signed."""
    return head[:1] == bytes([_SEQUENCE]) and _SIGNED in head[:_WITHIN]


def is_encrypted(head: bytes) -> bool:
    """Whether a file is an encrypted mail."""
    return head[:1] == bytes([_SEQUENCE]) and _ENCRYPTED in head[:_WITHIN]


def read_signed(path: Path, into: Findings) -> None:
    """Take out the mail that was signed, or another file.

    Raises:
        UnreadableDocument: It is too large, or damaged.
    """
    if path.stat().st_size > limits.MAIL_BYTES:
        raise UnreadableDocument(
            f"the signed mail has more than {limits.MAIL_BYTES:,} bytes; send its files as"
            " documents of their own"
        )
    try:
        mail = _signed_content(path.read_bytes())
    except (IndexError, RecursionError, StopIteration) as error:
        raise UnreadableDocument(
            "the signed mail is damaged or cut off; send the mail without its signature"
        ) from error
    if mail is None:
        into.note("it is a signature alone, without words; docflow does not verify it")
    else:
        into.note("what was signed is inside; docflow does not verify its signature")
        into.keep("signed.eml" if _FIELD.match(mail) else "signed", mail)


def _signed_content(content: bytes) -> bytes | None:
    """What was signed; None: it is elsewhere."""
    outer = _inner(content, _part(content, 0)[0])
    signed = next(part for part in outer if part[0] == _CONTENT)
    data = list(_inner(content, next(_inner(content, signed))))
    # A version and a set of algorithms come before what is signed.
    held = [part for part in _inner(content, data[2]) if part[0] == _CONTENT]
    if not held:
        return None
    return b"".join(_octets(content, next(_inner(content, held[0]))))


def _octets(content: bytes, part: _Part) -> Iterator[bytes]:
    tag, start, end = part
    if tag & _CONSTRUCTED:
        for piece in _inner(content, part):
            yield from _octets(content, piece)
    else:
        yield content[start:end]


def _inner(content: bytes, part: _Part) -> Iterator[_Part]:
    _, place, end = part
    while place < end:
        found, place = _part(content, place)
        yield found


def _part(content: bytes, place: int, depth: int = _DEPTH) -> tuple[_Part, int]:
    """A part, and where the next one begins."""
    tag, length = content[place], content[place + 1]
    start = place + 2
    if length == 0x80:
        if not depth:
            raise RecursionError
        # It ends with two zeros.
        end = start
        while content[end] or content[end + 1]:
            _, end = _part(content, end, depth - 1)
        return (tag, start, end), end + 2
    if length & 0x80:
        size = length & 0x7F
        length = int.from_bytes(content[start : start + size], "big")
        start += size
    if start + length > len(content):
        raise IndexError
    return (tag, start, start + length), start + length
