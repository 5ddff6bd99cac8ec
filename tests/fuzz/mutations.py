"""Damage to files, by chance from a seed."""

import gzip
import io
import random
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Sequence
from typing import Final

_NUMBERS: Final = (0, 1, 2, 3, 7, 16, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000)
_HUGE: Final = (0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF, 2**63 - 1, 2**63, 2**64 - 1)
_TEXTS: Final = (
    *(b"", b"0", b"-1", b"99999999999999999999", b"1e400", b"-1e-400", b"NaN", b"Infinity"),
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\r", b"\n\n"),
    *(b"'", b'"', b"<", b"&", b"&#0;", b"&lt;", b"]]>", b"<!--", b"{", b"[" * 300, b"(", b"%s"),
    *(b"../../x", b"/", b"\\", b"0000-00-00", b"99999-99-99T99:99:99", b"A" * 5_000),
)
_NUMBER: Final = re.compile(rb"-?\d+(\.\d+)?")


class Mutator:
    """Damages files.

    Args:
        dice: Chance.
    """

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def damaged(self, seeds: Sequence[bytes]) -> bytes:
        """One of the seeds, with one to four pieces of damage; packed ones mostly inside."""
        content = self._dice.choice(seeds)
        inside = self._dice.random() < 0.6
        if inside and content.startswith(b"PK\x03\x04"):
            return self._inside_zip(content)
        if inside and content.startswith(b"\x1f\x8b"):
            return gzip.compress(self._several(gzip.decompress(content), seeds), 1, mtime=0)
        return self._several(content, seeds)

    def _several(self, content: bytes, seeds: Sequence[bytes]) -> bytes:
        for _ in range(self._dice.choice((1, 1, 1, 2, 4))):
            content = self._once(content or b"\0", seeds)
        return content

    def _inside_zip(self, content: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = [(info, archive.read(info)) for info in archive.infolist()]
        names = [info.filename for info, _ in entries]
        sink = io.BytesIO()
        target = self._dice.randrange(len(entries))
        way = self._dice.randrange(8)
        with warnings.catch_warnings(), zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as packed:
            warnings.simplefilter("ignore", UserWarning)  # two entries of one name are meant
            for number, (info, part) in enumerate(entries):
                name = info.filename
                if number == target:
                    if way == 0:
                        continue
                    if way == 1:
                        name = self._dice.choice(names)
                    else:
                        part = self._several(part, [inner for _, inner in entries])
                packed.writestr(name, part)
        return sink.getvalue()

    def _once(self, content: bytes, seeds: Sequence[bytes]) -> bytes:
        ways: tuple[Callable[[], bytes], ...] = (
            lambda: self._flipped(content),
            lambda: self._flipped(content),
            lambda: self._numbered(content),
            lambda: self._numbered(content),
            lambda: content[: self._dice.randrange(len(content))],
            lambda: self._spliced(content, self._dice.choice(seeds)),
            lambda: self._spliced(content, content),
            lambda: self._repeated(content),
            lambda: self._without(content),
            lambda: self._put(content, self._dice.choice(_TEXTS)),
            lambda: self._digits(content),
        )
        return self._dice.choice(ways)()

    def _at(self, content: bytes) -> int:
        """A place; mostly one of the rarer bytes, and often near the beginning."""
        most = min(self._dice.choice((64, 512, len(content), len(content))), len(content))
        places = [self._dice.randrange(most) for _ in range(8)]
        return next((at for at in places if content[at] not in (0, 0x20, 0xFF)), places[0])

    def _chunk(self, content: bytes) -> tuple[int, int]:
        start = self._dice.randrange(len(content))
        return start, min(len(content), start + self._dice.choice((1, 4, 16, 64, 512, 4096)))

    def _flipped(self, content: bytes) -> bytes:
        found = bytearray(content)
        for _ in range(self._dice.choice((1, 1, 1, 2, 8, 32))):
            at = self._at(content)
            found[at] = self._dice.choice(
                (found[at] ^ (1 << self._dice.randrange(8)), self._dice.randrange(256), 0, 255)
            )
        return bytes(found)

    def _numbered(self, content: bytes) -> bytes:
        """With a number of some length in the place of another: sizes, counts, offsets."""
        size, code = self._dice.choice(((1, "B"), (2, "H"), (4, "L"), (4, "L"), (8, "Q")))
        value = self._dice.choice((*_NUMBERS, *_HUGE, len(content), len(content) - 1))
        packed = struct.pack(self._dice.choice("<>") + code, value % (1 << 8 * size))
        at = self._at(content)
        return content[:at] + packed + content[at + size :]

    def _spliced(self, content: bytes, other: bytes) -> bytes:
        start, end = self._chunk(other) if other else (0, 0)
        at = self._dice.randrange(len(content))
        after = at + self._dice.choice((0, end - start))
        return content[:at] + other[start:end] + content[after:]

    def _repeated(self, content: bytes) -> bytes:
        start, end = self._chunk(content)
        times = self._dice.choice((2, 3, 50))
        return content[:start] + content[start:end] * times + content[end:]

    def _without(self, content: bytes) -> bytes:
        start, end = self._chunk(content)
        return content[:start] + content[end:]

    def _put(self, content: bytes, text: bytes) -> bytes:
        at = self._at(content)
        return content[:at] + text + content[at + self._dice.choice((0, 1, len(text))) :]

    def _digits(self, content: bytes) -> bytes:
        found = list(_NUMBER.finditer(content, 0, 1 << 20))
        if not found:
            return self._put(content, self._dice.choice(_TEXTS))
        match = self._dice.choice(found)
        text = self._dice.choice(_TEXTS[:8])
        return content[: match.start()] + text + content[match.end() :]
