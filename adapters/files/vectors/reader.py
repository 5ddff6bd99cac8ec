"""Reads vector data in processes of their own."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from pydantic import ValidationError

from adapters.files import gdal, limits
from adapters.files.failures import Wording
from adapters.files.forks import Bounds, Forks, Order
from adapters.files.package import open_package
from adapters.files.vectors.geoparquet import write_geoparquet
from adapters.files.vectors.protocol import (
    VectorAnswer,
    VectorFormat,
    VectorOrder,
)
from adapters.ports import Unavailable, UnreadableDocument
from adapters.ports.vectors import QuestionOpen
from contracts.jobs import HEAVY_MEMORY
from contracts.jobs.vectors import SourceReport, VectorOptions, VectorTable

_CHILD: Final = "adapters.files.vectors.child"
_HEAD: Final = 4_096
_BOUNDS: Final = Bounds(
    memory_bytes=limits.VECTOR_MEMORY_BYTES,
    cpu_seconds=limits.VECTOR_CPU_SECONDS,
    seconds=limits.VECTOR_SECONDS,
)
_WORDING: Final = Wording(noun="vector data", when_slow="split them", memory_setting=HEAVY_MEMORY)


class VectorFiles:
    """Reads and writes files, a `Vectors`; an async context manager, which ends its processes.

    Args:
        bounds: What reading one file may cost.
        at_once: Files read side by side; the others wait.
        memory_bytes: Address space of reading one file, where it is another one.
    """

    def __init__(
        self, bounds: Bounds = _BOUNDS, at_once: int = 1, memory_bytes: int | None = None
    ) -> None:
        self._bounds = bounds.with_memory(memory_bytes)
        self._forks = Forks(_CHILD, at_once, gdal.ENVIRONMENT, _WORDING)

    async def read(self, path: Path, folder: Path, options: VectorOptions) -> SourceReport:
        """Read all layers of a file."""
        format = format_of(path)
        own = path.rename(path.with_name(f"source.{format.value}"))
        order = VectorOrder(
            path=own.absolute(), format=format, folder=folder.absolute(), options=options
        )
        body = b"".join([piece async for piece in self._forks.answer(self._order(order))])
        try:
            answer = VectorAnswer.model_validate_json(body)
        except ValidationError as error:
            raise Unavailable("the process that reads vector data was lost; try again") from error
        if answer.question is not None and answer.parameter is not None:
            raise QuestionOpen(answer.parameter, answer.question)
        if answer.report is None:
            raise UnreadableDocument(answer.refused or "the file could not be read")
        return answer.report

    async def export(
        self, table: VectorTable, rows: AsyncIterator[Sequence[tuple[Any, ...]]], target: Path
    ) -> int:
        """Write a table as GeoParquet."""
        return await write_geoparquet(table, rows, target)

    def _order(self, order: VectorOrder) -> Order:
        return Order(
            body=order.model_dump_json(),
            bounds=self._bounds,
            readable=(order.path.parent,),
            writable=(order.folder,),
        )

    async def aclose(self) -> None:
        """End the processes; no file is being read any more."""
        await self._forks.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def format_of(path: Path) -> VectorFormat:
    """The format of a file, by what it begins with; its name may say anything.

    Raises:
        UnreadableDocument: It is none of those that are read.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    for magic, format in _MAGIC.items():
        if head.startswith(magic):
            return _zipped(path) if format is VectorFormat.SHAPEFILE else format
    # A text sequence (RFC 8142) has a separator before each of its features.
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\n\r\x1e")
    if text.startswith(b"{"):
        return VectorFormat.GEOJSON
    if _is_utf16_json(head):
        raise UnreadableDocument(
            "the file is JSON in UTF-16; save it in UTF-8, as GeoJSON has to be"
        )
    if text.startswith(b"<") or head[:2] in _UTF16:
        return VectorFormat.KML
    if head[:4] == b"\0\0\x27\x0a":
        raise UnreadableDocument(
            "a .shp alone is a part of a Shapefile; zip it with its .shx, .dbf and .prj"
        )
    raise UnreadableDocument("the file is none of a zipped Shapefile, GeoPackage, GeoJSON or KML")


_MAGIC: Final[Mapping[bytes, VectorFormat]] = {
    b"SQLite format 3\0": VectorFormat.GEOPACKAGE,
    b"PK\x03\x04": VectorFormat.SHAPEFILE,
    b"PK\x05\x06": VectorFormat.SHAPEFILE,
}


_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")


def _is_utf16_json(head: bytes) -> bool:
    if head[:2] not in _UTF16:
        return False
    return head.decode("utf-16", errors="replace").lstrip().startswith(("{", "["))


def _zipped(path: Path) -> VectorFormat:
    with open_package(path, "archive") as package:
        names = [name.lower() for name in package.names()]
    if not any(name.endswith(".shp") for name in names):
        if any(name.endswith(".kml") for name in names):
            raise UnreadableDocument("a KMZ is not read; unpack it and send the KML in it")
        raise UnreadableDocument("the archive holds no Shapefile (no .shp)")
    return VectorFormat.SHAPEFILE
