"""Documents that are read by the real readers, in processes of their own."""

from itertools import count
from pathlib import Path

from adapters.files.texts.pool import FileTexts
from adapters.ports.documents import Extracted

_numbers = count()


class Reading:
    """Reads documents out of a folder of its own each."""

    def __init__(self, texts: FileTexts, folder: Path) -> None:
        self._texts = texts
        self._folder = folder

    async def __call__(self, content: bytes, filename: str | None = None) -> Extracted:
        folder = self._folder / str(next(_numbers))
        inside = folder / "inside"
        inside.mkdir(parents=True)
        (folder / "document").write_bytes(content)
        return await self._texts.extract(folder / "document", filename, inside)

    async def words(self, content: bytes, filename: str | None = None) -> str:
        """Text of a document and of all files inside it, however deep."""
        found = await self(content, filename)
        inside = [await self.words(file.path.read_bytes(), file.filename) for file in found.files]
        return "\n".join((found.text, *inside))
