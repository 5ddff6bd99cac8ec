"""Pictures that are whole, and such as only look so."""

import struct
import zlib
from pathlib import Path

import pytest

from adapters.files.rasters.cog import check_png
from adapters.ports.errors import UnreadableDocument

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">L", len(body)) + kind + body + struct.pack(">L", zlib.crc32(kind + body))


def picture(
    pixels: bytes, *, side: int = 9, depth: int = 8, colour: int = 0, interlaced: int = 0
) -> bytes:
    """A square picture whose rows, with the bytes of their filters, are these."""
    head = struct.pack(">LLBBBBB", side, side, depth, colour, 0, 0, interlaced)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(pixels)), chunk(b"IEND", b""))
    return SIGNATURE + b"".join(parts)


def refusal(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "picture.png"
    path.write_bytes(content)
    with pytest.raises(UnreadableDocument) as caught:
        check_png(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("size", "given"),
    [
        (9 * 10, {}),
        (9 * 28, {"colour": 2}),
        (9 * 19, {"depth": 16}),
        (9 * 3, {"depth": 1, "colour": 3}),
        # Seven passes of 2x2, 1x2, 3x1, 2x3, 5x2, 4x5 and 9x4 pixels.
        (6 + 4 + 4 + 9 + 12 + 25 + 40, {"interlaced": 1}),
    ],
)
def test_a_whole_picture_passes(tmp_path: Path, size: int, given: dict[str, int]) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(picture(bytes(size), **given))
    check_png(path)


def test_a_changed_byte_is_damage(tmp_path: Path) -> None:
    content = bytearray(picture(bytes(90)))
    content[len(SIGNATURE) + 25 + 10] ^= 1
    assert "damaged" in refusal(tmp_path, bytes(content))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (picture(bytes(80)), "its pixels are not all there"),
        (picture(bytes(1_000)), "it holds more pixels than it says"),
        (picture(bytes(90))[:60], "damaged"),
        (picture(bytes(90), colour=5), "its header is wrong"),
        (SIGNATURE + chunk(b"IEND", b""), "its pixels are not all there"),
        (b"GIF89a", "it does not begin as a PNG"),
    ],
)
def test_what_does_not_hold_its_pixels_is_refused(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    assert reason in refusal(tmp_path, content)
