"""What an archive may ask for, counted while it is unpacked."""

from typing import Final

from adapters.ports import UnreadableDocument
from adapters.ports.transfer_files import ExtractionLimits

RATIO_FREE_BYTES: Final = 64 << 20
"""Archives that unpack to less may have any ratio."""


class Bounds:
    """Counts files and bytes of one archive.

    Args:
        limits: What is allowed.
        packed: Bytes of the archive.
    """

    def __init__(self, limits: ExtractionLimits, packed: int) -> None:
        self._limits = limits
        self._packed = packed
        self._files = 0
        self._bytes = 0

    def file(self) -> None:
        """One more file.

        Raises:
            UnreadableDocument: It is one too many.
        """
        self._files += 1
        if self._files > self._limits.files:
            raise UnreadableDocument(
                f"it holds more than {self._limits.files:,} files (AtMost); it was not unpacked"
            )

    def unpacked(self, size: int) -> None:
        """Some more bytes.

        Raises:
            UnreadableDocument: They are too many, at all or for the archive's size.
        """
        self._bytes += size
        if self._bytes > self._limits.bytes:
            raise UnreadableDocument(
                f"it unpacks to more than {self._limits.bytes:,} bytes (BytesAtMost)"
            )
        allowed = max(RATIO_FREE_BYTES, self._limits.ratio * self._packed)
        if self._bytes > allowed:
            raise UnreadableDocument(
                f"it unpacks to more than {self._limits.ratio:,} times its size (RatioAtMost), as "
                "a bomb does"
            )

    def end(self) -> None:
        """Nothing more comes.

        Raises:
            UnreadableDocument: It held no file.
        """
        if not self._files:
            raise UnreadableDocument("it holds no files")
