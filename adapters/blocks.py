"""Bytes that arrive in pieces of any size, in blocks that a store takes."""

from collections.abc import AsyncIterator


async def in_blocks(pieces: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    """Join pieces to blocks of `size` bytes; only the last one is shorter, and none is empty.

    Holds a block and a piece at a time.
    """
    held = bytearray()
    async for piece in pieces:
        held += piece
        if len(held) < size:
            continue
        whole = len(held) - len(held) % size
        view = bytes(held[:whole])
        del held[:whole]
        for start in range(0, whole, size):
            yield view[start : start + size]
    if held:
        yield bytes(held)
