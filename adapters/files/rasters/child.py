"""The process that works on rasters: `python -m adapters.files.rasters.child`.

An order is a `RasterOrder`; pieces of its answer are `Answer`s, of which the last one holds the
result or why there is none.
"""

from typing import Final, cast

import rasterio.errors
from rasterio._err import (
    CPLE_BaseError,  # pyright: ignore[reportUnknownVariableType]
    CPLE_OutOfMemoryError,  # pyright: ignore[reportUnknownVariableType]
)

from adapters.files import forks, gdal
from adapters.files.rasters import work
from adapters.files.rasters.grids import target_grid
from adapters.files.rasters.inspect import inspect
from adapters.files.rasters.requests import (
    ORDERS,
    Answer,
    Grid,
    Inspect,
    Prepare,
    Publish,
    RasterOrder,
    Tile,
)
from adapters.ports.errors import UnreadableDocument
from workflows.shared.contracts import Contract
from workflows.shared.errors import InvalidDocument, RuleViolation

_OF_GDAL: Final = (
    rasterio.errors.RasterioError,
    rasterio.errors.CRSError,
    cast("type[Exception]", CPLE_BaseError),
)
"""What GDAL says of files in which something is not as it should be."""


def _handle(body: str, send: forks.Send) -> None:
    order = ORDERS.validate_json(body)

    def progress(share: float) -> None:
        send(Answer(progress=share).model_dump_json().encode())

    try:
        answer = Answer(result=_done(order, progress).model_dump(mode="json"))
    except (UnreadableDocument, InvalidDocument) as error:
        _refuse_lack_of_memory(error)
        answer = Answer(unreadable=str(error))
    except RuleViolation as error:
        answer = Answer(violated=str(error))
    except _OF_GDAL as error:
        _refuse_lack_of_memory(error)
        answer = Answer(unreadable=f"the raster is damaged: {_plain(error)}")
    send(answer.model_dump_json().encode())


def _done(order: RasterOrder, progress: work.Progress) -> Contract:
    match order:
        case Inspect():
            return inspect(order.path, order.subdataset, order.name)
        case Grid():
            return target_grid(order.order)
        case Prepare():
            return work.prepare(order, progress)
        case Tile():
            return work.tile(order, progress)
        case Publish():
            return work.publish(order, progress)


def _refuse_lack_of_memory(error: BaseException) -> None:
    """GDAL says with an error of its own that it is refused more memory; the file is sound.

    Raises:
        MemoryError: It has said so.
    """
    reason: BaseException | None = error
    while reason is not None:
        if isinstance(reason, CPLE_OutOfMemoryError) or "annot allocate" in str(reason):
            raise MemoryError from error
        reason = reason.__cause__


def _plain(error: Exception) -> str:
    """What GDAL says, without folders of the server."""
    words = str(error.__cause__ or error).split()
    return " ".join(word for word in words if "/" not in word)[:300]


if __name__ == "__main__":
    gdal.require()
    forks.serve(_handle)
