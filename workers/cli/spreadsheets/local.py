"""A file of this machine, as an upload."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import BinaryIO, Final

from workers.services.spreadsheets.upload_form import check_beginning

BLOCK_BYTES: Final = 1 << 20


class LocalUpload:
    """An upload that is not a request: its file lies here, its fields are options of a command."""

    def __init__(self, filename: str, content: BinaryIO, fields: Mapping[str, str]) -> None:
        """Prepare to read a file.

        Args:
            filename: Its name, without folders.
            content: Its bytes.
            fields: As a form has them.
        """
        self.filename = filename[-255:]
        self.fields = dict(fields)
        self._content = content

    async def open(self) -> None:
        """Nothing comes before the file."""

    async def file(self) -> AsyncGenerator[bytes]:
        """The bytes of the file; one that is not a spreadsheet is refused as every upload is."""
        block = await self._read()
        check_beginning(block, self.filename)
        while block:
            yield block
            block = await self._read()

    async def finish(self) -> Mapping[str, str]:
        """Nothing comes behind the file."""
        return self.fields

    async def _read(self) -> bytes:
        return await asyncio.to_thread(self._content.read, BLOCK_BYTES)
