"""Bytes that arrive in pieces of any size, in blocks that a store takes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from io import BytesIO
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
    held = BytesIO()
    async for piece in pieces:
        start = 0
        if held.tell():
            start = min(size - held.tell(), len(piece))
            held.write(memoryview(piece)[:start])
            if held.tell() < size:
                continue
            # Without a copy: nothing else refers to its buffer.
            block, held = held.getvalue(), BytesIO()
            yield block
        if start == 0 and len(piece) == size:
            yield piece
            continue
        while len(piece) - start >= size:
            yield piece[start : start + size]
            start += size
        held.write(memoryview(piece)[start:])
    if held.tell():
        yield held.getvalue()


async def at_least(pieces: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    """Join short pieces until they have `size` bytes; longer ones are passed on, uncopied.

    For consumers that take blocks of any length, but should not get too many: exact blocks would be
    copied from pieces that are a little longer. Only the last one is shorter, and none is empty.
    """
    held = BytesIO()
    async for piece in pieces:
        if not held.tell() and len(piece) >= size:
            yield piece
            continue
        held.write(piece)
        if held.tell() >= size:
            block, held = held.getvalue(), BytesIO()
            yield block
    if held.tell():
        yield held.getvalue()
