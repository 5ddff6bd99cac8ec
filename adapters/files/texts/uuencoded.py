"""Files that old programs wrote into the text of a mail.

Source: POSIX.1-2017, uuencode.
"""

import binascii
import re
from typing import Final

from adapters.files.texts.findings import Findings

_BEGIN: Final = re.compile(r"begin [0-7]{3,4} (\S.*)")
_END: Final = ("end", "END")


def take_out_uuencoded(text: str, into: Findings) -> str:
    """Keep the files, and give back the text without them; what is cut off stays in it."""
    if "begin " not in text:
        return text
    lines = text.split("\n")
    kept: list[str] = []
    place = 0
    while place < len(lines):
        begin = _BEGIN.fullmatch(lines[place].rstrip())
        found = _file(lines, place + 1) if begin else None
        if begin is None or found is None:
            kept.append(lines[place])
            place += 1
            continue
        content, place = found
        into.keep(begin[1], content)
    return "\n".join(kept)


def _file(lines: list[str], place: int) -> tuple[bytes, int] | None:
    """Bytes of a file and the line behind it; None: it does not end, or is none."""
    pieces: list[bytes] = []
    for number in range(place, len(lines)):
        line = lines[number].rstrip("\r")
        if line.strip() in _END:
            return b"".join(pieces), number + 1
        try:
            pieces.append(binascii.a2b_uu(line))
        except (binascii.Error, ValueError):
            return None
    return None
