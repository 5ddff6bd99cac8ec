"""A kind of partner: a folder, in which a file appears when it is whole."""

import os
import uuid
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from docflow.extend import Entry, FileMissing, NameTaken, Partner, PartnerFiles


class Shelf(PartnerFiles):
    """Files below the folder that `container` of the record names."""

    @classmethod
    def problems(cls, partner: Partner) -> Iterable[str]:
        if not partner.container:
            yield "a shelf needs `container`: its folder"

    def _at(self, path: str) -> Path:
        return Path(self.partner.container or "") / path

    async def entry(self, path: str) -> Entry | None:
        file = self._at(path)
        if not file.is_file():
            return None
        found = file.stat()
        return Entry(path, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))

    async def list(self, folder: str) -> Sequence[Entry]:
        place = self._at(folder)
        if not place.is_dir():
            raise FileMissing(f"there is no folder {folder}")
        names = [f"{folder}/{each.name}" if folder else each.name for each in place.iterdir()]
        return [found for name in names if (found := await self.entry(name)) is not None]

    async def read(self, path: str, offset: int) -> AsyncIterator[bytes]:
        if not self._at(path).is_file():
            raise FileMissing(f"there is no file {path}")
        with self._at(path).open("rb") as source:
            source.seek(offset)
            while block := source.read(1 << 20):
                yield block

    async def put(
        self, path: str, chunks: AsyncIterator[bytes], size: int, *, replaces: bool
    ) -> None:
        target = self._at(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = target.with_name(f".{uuid.uuid4().hex}")
        try:
            with hidden.open("xb") as sink:
                async for chunk in chunks:
                    sink.write(chunk)
            if replaces:
                os.replace(hidden, target)
            else:
                os.link(hidden, target)
        except FileExistsError:
            raise NameTaken(f"there is another file {path}") from None
        finally:
            hidden.unlink(missing_ok=True)

    async def remove(self, path: str) -> bool:
        is_there = self._at(path).exists()
        self._at(path).unlink(missing_ok=True)
        return is_there
