"""Pieces of any size come as blocks of one size, and no byte is lost."""

from collections.abc import AsyncIterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from adapters.object_blobs import at_least, in_blocks

SIZE = 4


async def of(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


@given(st.lists(st.binary(max_size=3 * SIZE)))
async def test_pieces_become_blocks(pieces: list[bytes]) -> None:
    blocks = [block async for block in in_blocks(of(pieces), SIZE)]
    assert b"".join(blocks) == b"".join(pieces)
    assert all(len(block) == SIZE for block in blocks[:-1])
    assert all(0 < len(block) <= SIZE for block in blocks)


async def test_what_is_a_block_already_is_not_copied() -> None:
    block = b"abcd"
    assert [each is block async for each in in_blocks(of([block, block]), SIZE)] == [True, True]


@given(st.lists(st.binary(max_size=3 * SIZE)))
async def test_short_pieces_are_joined(pieces: list[bytes]) -> None:
    blocks = [block async for block in at_least(of(pieces), SIZE)]
    assert b"".join(blocks) == b"".join(pieces)
    assert all(len(block) >= SIZE for block in blocks[:-1])
    assert all(blocks)


async def test_what_is_longer_than_a_block_is_not_copied() -> None:
    piece = b"abcdef"
    blocks = [block async for block in at_least(of([b"head", piece, piece]), SIZE)]
    assert [block is piece for block in blocks] == [False, True, True]
