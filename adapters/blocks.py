"""Bytes that arrive in pieces of any size, in blocks that a store takes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final, TypeVar

T = TypeVar("T")
_SHORT: Final = 1 << 16


async def computed(compute: Callable[[bytes], T], block: bytes) -> T:
    """The result of a block, computed in a thread unless the block is short.

    To hand 64 KB to a thread costs as much as to hash or to encrypt them.
    """
    return compute(block) if len(block) <= _SHORT else await asyncio.to_thread(compute, block)


async def in_blocks(pieces: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    """Join pieces to blocks of `size` bytes; only the last one is shorter, and none is empty.

    Holds a block and a piece at a time; what is a block already is not copied.
    """
    held = bytearray()
    async for piece in pieces:
        start = 0
        if held:
            start = min(size - len(held), len(piece))
            held += memoryview(piece)[:start]
            if len(held) < size:
                continue
            yield bytes(held)
            held.clear()
        if start == 0 and len(piece) == size:
            yield piece
            continue
        while len(piece) - start >= size:
            yield piece[start : start + size]
            start += size
        held += memoryview(piece)[start:]
    if held:
        yield bytes(held)
