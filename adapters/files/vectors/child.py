"""The process that reads vector data: `python -m adapters.files.vectors.child`.

An order is a `VectorRequest`; its answer is one piece, a `VectorAnswer`.
"""

import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path

from adapters.files import forks, gdal

gdal.require(gdal.VECTORS)

# They load GDAL, which reads its environment when it is loaded.
from adapters.files.vectors.layers import Layer, Refused, Source, Unsure  # noqa: E402
from adapters.files.vectors.opening import open_source  # noqa: E402
from adapters.files.vectors.projection import to_degrees  # noqa: E402
from adapters.files.vectors.protocol import VectorAnswer, VectorRequest  # noqa: E402
from adapters.files.vectors.report import write_layer  # noqa: E402
from adapters.ports.errors import UnreadableDocument  # noqa: E402
from workflows.jobs.vectors import (  # noqa: E402
    LAYERS,
    NOTES,
    LayerReport,
    SourceReport,
    table_names,
)


def handle_request(order: VectorRequest) -> VectorAnswer:
    """Read a file, and write its layers; what GDAL warns of is said."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", RuntimeWarning)
            report = _read(order)
        warned = dict.fromkeys(f"GDAL: {each.message}"[:1_000] for each in caught)
        return VectorAnswer(
            report=report.model_copy(update={"left_out": (*report.left_out, *warned)[:NOTES]})
        )
    except Unsure as error:
        return VectorAnswer(question=str(error)[:1_000], parameter=error.parameter)
    except (Refused, UnreadableDocument) as error:
        return VectorAnswer(refused=str(error)[:1_000])
    except MemoryError:
        raise
    except Exception as error:
        # The caller names it: an exit code would leave only a guess at what it was.
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        return VectorAnswer(unexpected=f"{type(error).__name__} at {where}: {error}"[:1_000])


def _read(order: VectorRequest) -> SourceReport:
    source = open_source(order.path, order.folder, order.options.encoding)
    if len(source.layers) > LAYERS:
        raise Refused(f"the file has {len(source.layers):,} layers; at most {LAYERS} are read")
    layers, left_out = _chosen(source, order.options.layers)
    tables = table_names(order.options.dataset, (each.name for each in layers))
    reports = [
        _written(layer, tables[layer.name], number, order) for number, layer in enumerate(layers)
    ]
    notes = (*source.left_out, *left_out)[:NOTES]
    return SourceReport(format=source.format, layers=tuple(reports), left_out=notes)


def _chosen(source: Source, wanted: Sequence[str] | None) -> tuple[Sequence[Layer], list[str]]:
    if not source.layers:
        raise Refused("the file has no layer with geometries")
    if wanted is None:
        return source.layers, []
    known = {layer.name: layer for layer in source.layers}
    if missing := [name for name in wanted if name not in known]:
        raise Refused(f"the file has no layer {missing[0]!r}; it has {', '.join(map(repr, known))}")
    left_out = [f"layer {name!r} was not asked for" for name in known if name not in wanted]
    return [known[name] for name in wanted], left_out


def _written(layer: Layer, table: str, number: int, order: VectorRequest) -> LayerReport:
    options = order.options
    projection = to_degrees(
        layer.crs,
        options.source_crs,
        layer.name,
        layer.bounds,
        allow_ballpark=options.allow_ballpark,
    )
    return write_layer(
        layer,
        table,
        projection,
        options,
        order.folder / f"{number}.parquet",
        order.folder / f"{number}.jsonl",
    )


def _handle(body: str, send: forks.Send) -> None:
    order = VectorRequest.model_validate_json(body)
    send(handle_request(order).model_dump_json().encode())


if __name__ == "__main__":
    forks.serve(_handle)
