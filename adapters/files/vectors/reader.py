"""Reads vector data in processes of their own."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final, Self

from pydantic import ValidationError

from adapters.files import gdal, limits
from adapters.files.failures import Wording
from adapters.files.forks import Bounds, ForkRequest, Forks
from adapters.files.vectors.geoparquet import write_geoparquet
from adapters.files.vectors.protocol import (
    VectorAnswer,
    VectorRequest,
)
from adapters.ports.errors import Unavailable, UnreadableDocument
from adapters.ports.spatial import QuestionOpen
from workflows.jobs.definitions import HEAVY_MEMORY
from workflows.jobs.vectors import SourceReport, VectorOptions, VectorTable

_CHILD: Final = "adapters.files.vectors.child"
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
        self._forks = Forks(_CHILD, at_once, gdal.VECTORS, _WORDING)

    async def read(self, path: Path, folder: Path, options: VectorOptions) -> SourceReport:
        """Read all layers of a file."""
        order = VectorRequest(path=path.absolute(), folder=folder.absolute(), options=options)
        body = b"".join([piece async for piece in self._forks.answer(self._order(order))])
        try:
            answer = VectorAnswer.model_validate_json(body)
        except ValidationError as error:
            raise Unavailable("the process that reads vector data was lost; try again") from error
        if answer.question is not None and answer.parameter is not None:
            raise QuestionOpen(answer.parameter, answer.question)
        if answer.unexpected is not None:
            raise UnreadableDocument(
                f"the reader of vector data met an unexpected {answer.unexpected}; this is a fault"
                " of the reader, and the file may be sound: report it, with the file"
            )
        if answer.report is None:
            raise UnreadableDocument(answer.refused or "the file could not be read")
        return answer.report

    async def export(
        self, table: VectorTable, rows: AsyncIterator[Sequence[tuple[Any, ...]]], target: Path
    ) -> int:
        """Write a table as GeoParquet."""
        return await write_geoparquet(table, rows, target)

    def _order(self, order: VectorRequest) -> ForkRequest:
        return ForkRequest(
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
