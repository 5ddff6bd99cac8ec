"""Compound files, read back by another hand."""

import io

import olefile
import pytest

from stack.compound_file import Content, compound_file

CONTENT: Content = {
    "short": b"x" * 10,
    "empty": b"",
    "long": bytes(range(256)) * 40,
    "storage": {"inside": b"y" * 100, "deeper": {"edge": b"z" * 4096}},
    **{f"stream {number}": bytes([number]) * number * 20 for number in range(1, 150)},
}


def test_everything_is_found_again() -> None:
    with olefile.OleFileIO(io.BytesIO(compound_file(CONTENT))) as compound:
        assert not compound.parsing_issues
        for path in compound.listdir():
            held: Content | bytes = CONTENT
            for name in path:
                assert not isinstance(held, bytes)
                held = held[name]
            assert compound.openstream(path).read() == held
        assert len(compound.listdir()) == 3 + 2 + 149


def test_what_needs_other_sectors_is_refused() -> None:
    with pytest.raises(ValueError, match="too large to be written so simply"):
        compound_file({"huge": bytes(8_000_000)})
