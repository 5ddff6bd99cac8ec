"""The port `Rasters` over processes that are kept ready."""

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final, Self, TypeVar

from pydantic import ValidationError

from adapters.files import gdal, limits
from adapters.files.failures import Wording
from adapters.files.forks import Bounds, ForkRequest, Forks
from adapters.files.rasters.requests import (
    Answer,
    Grid,
    Inspect,
    Placed,
    Prepare,
    Publish,
    RasterOrder,
    Tile,
)
from adapters.ports.errors import UnreadableDocument
from adapters.ports.spatial import PlacedTile, Progress
from workflows.jobs.definitions import HEAVY_MEMORY
from workflows.jobs.rasters import (
    CogInfo,
    GridInput,
    PixelRules,
    RasterInfo,
    TargetGrid,
    TileInfo,
    TileWindow,
)
from workflows.shared.contracts import Contract
from workflows.shared.errors import RuleViolation

_CHILD: Final = "adapters.files.rasters.child"
_WORDING: Final = Wording(
    noun="raster",
    when_slow="split it",
    when_damaged="save it again, in tiles of 512",
    memory_setting=HEAVY_MEMORY,
)
DEFAULT_BOUNDS: Final = Bounds(
    memory_bytes=1536 * limits.MB, cpu_seconds=1_500, seconds=1_800, file_bytes=64 << 30
)

C = TypeVar("C", bound=Contract)


class FileRasters:
    """Works on local files; a `Rasters`.

    An async context manager: it ends its processes.

    Args:
        at_once: Rasters worked on side by side; the others wait.
        bounds: What one piece of work may cost.
        memory_bytes: Address space of a piece of work, where it is another one.
    """

    def __init__(
        self, at_once: int = 2, bounds: Bounds = DEFAULT_BOUNDS, memory_bytes: int | None = None
    ) -> None:
        self._bounds = bounds.with_memory(memory_bytes)
        self._forks = Forks(_CHILD, at_once, gdal.ENVIRONMENT, _WORDING)

    async def inspect(
        self, path: Path, folder: Path, subdataset: int | None = None, name: str | None = None
    ) -> RasterInfo:
        """Read what a raster says of itself, and decode all of it."""
        order = Inspect(path=path.absolute(), name=name or path.name, subdataset=subdataset)
        return await self._done(order, RasterInfo, [path], folder)

    async def grid(self, order: GridInput) -> TargetGrid:
        """The grid for a raster."""
        return await self._done(Grid(order=order), TargetGrid, [], None)

    async def prepare(
        self, path: Path, facts: RasterInfo, target: Path, name: str | None = None
    ) -> RasterInfo:
        """Rewrite a raster into a tiled TIFF."""
        order = Prepare(
            path=path.absolute(), name=name or path.name, facts=facts, target=target.absolute()
        )
        return await self._done(order, RasterInfo, [path], target.parent)

    async def tile(
        self,
        path: Path,
        facts: RasterInfo,
        grid: TargetGrid,
        rules: PixelRules,
        window: TileWindow,
        target: Path,
        *,
        overviews: bool,
        progress: Progress,
    ) -> TileInfo:
        """Write a window of the grid as a COG."""
        order = Tile(
            path=path.absolute(),
            facts=facts,
            grid=grid,
            rules=rules,
            window=window,
            target=target.absolute(),
            overviews=overviews,
        )
        return await self._done(order, TileInfo, [path], target.parent, progress)

    async def publish(
        self,
        tiles: Sequence[PlacedTile],
        grid: TargetGrid,
        rules: PixelRules,
        target: Path,
        preview: Path,
        progress: Progress,
    ) -> CogInfo:
        """Put tiles together into one COG, and make its picture."""
        order = Publish(
            tiles=tuple(Placed(path=each.path.absolute(), window=each.window) for each in tiles),
            grid=grid,
            rules=rules,
            target=target.absolute(),
            preview=preview.absolute(),
        )
        readable = [each.path for each in tiles]
        return await self._done(order, CogInfo, readable, target.parent, progress)

    async def aclose(self) -> None:
        """End the processes; nothing is being worked on any more."""
        await self._forks.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _done(
        self,
        order: RasterOrder,
        result: type[C],
        readable: Sequence[Path],
        folder: Path | None,
        progress: Progress = lambda share, said: None,
    ) -> C:
        whole = ForkRequest(
            body=order.model_dump_json(),
            bounds=self._bounds,
            readable=tuple(path.absolute() for path in readable),
            writable=(folder.absolute(),) if folder else (),
        )
        answer: Answer | None = None
        async with aclosing(self._forks.answer(whole)) as pieces:
            async for piece in pieces:
                answer = _understood(piece)
                if answer.progress is not None:
                    progress(answer.progress, answer.said)
        return _result(answer, result)


def _understood(piece: bytes) -> Answer:
    try:
        return Answer.model_validate_json(piece)
    except ValidationError as error:
        raise _invalid() from error


def _result(answer: Answer | None, result: type[C]) -> C:
    if answer is None or answer.progress is not None:
        raise _invalid()
    if answer.unreadable is not None:
        raise UnreadableDocument(answer.unreadable)
    if answer.violated is not None:
        raise RuleViolation(answer.violated)
    try:
        return result.model_validate(answer.result)
    except ValidationError as error:
        raise _invalid() from error


def _invalid() -> UnreadableDocument:
    return UnreadableDocument(
        "the raster could not be read: its reader process returned invalid data"
    )
