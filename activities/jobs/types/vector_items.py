"""What `process_vector` publishes of a table: its item, and what people see of it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

from activities.jobs.api import InputNeeded, TaskContext
from activities.jobs.superseded import KEEP_HOURS, files_of, supersede
from adapters.ports.features import StoredTable
from contracts.blobs import BlobRef
from contracts.jobs import JobOutputs, JsonObject, OutputFile
from contracts.jobs.stac import (
    GEOPACKAGE,
    PARQUET,
    AssetFacts,
    CollectionFacts,
    ColumnFacts,
    ItemFacts,
    LinkFacts,
    TableFacts,
)
from contracts.jobs.vectors import LayerReport, LoadReport, ProcessVectorParameters, SourceReport
from domain.errors import RuleViolation
from domain.jobs.rasters.times import Acquired, is_mistyped, time_said
from domain.jobs.stac import build_collection, build_item
from domain.jobs.vectors.reports import item_id, lineage

_TABLE: Final = "application/x.postgis-table"

Context = TaskContext[ProcessVectorParameters]


async def publish(context: Context, id: str, item: ItemFacts | None) -> None:
    """Put the item of a table in the place of the one before; None: there is none any more."""
    catalogue, collection = context.resources.catalogue, context.parameters.collection
    before = await catalogue.item(collection, id)
    used: set[str] = set()
    if item is not None:
        if await catalogue.collection(collection) is None:
            await catalogue.put_collection(_collection(collection))
        await catalogue.put_items(collection, [build_item(item)])
        used = {each.href for each in item.assets.values()}
    elif before is not None:
        await catalogue.delete_item(collection, id)
    old = [uri for uri in files_of(before or {}) if uri not in used]
    await supersede(context.resources, collection, id, old, KEEP_HOURS)


def acquired(parameters: ProcessVectorParameters) -> Acquired:
    try:
        found = time_said(parameters.datetime, parameters.datetime_pattern, parameters.source)
    except RuleViolation as error:
        if not is_mistyped(parameters.datetime, parameters.datetime_pattern):
            raise
        raise InputNeeded("datetime", str(error)) from error
    if found is None:
        raise InputNeeded(
            "datetime",
            f"when were the data of {parameters.source} acquired?"
            " Answer with 2024-05-31T10:00:00Z, a day, or start/end",
        )
    return found


def item_of(
    context: Context,
    report: SourceReport,
    layer: LayerReport,
    load: LoadReport,
    stored: StoredTable,
    exported: BlobRef | None,
) -> ItemFacts:
    parameters = context.parameters
    found = acquired(parameters)
    is_range = found.instant is None
    now = datetime.now(UTC)
    assert stored.extent is not None
    return ItemFacts(
        id=item_id(load.table),
        collection=parameters.collection,
        geometry=outline(stored.extent),
        datetime=found.instant,
        start=found.start if is_range else None,
        end=found.end if is_range else None,
        created=now,
        updated=now,
        title=load.table,
        table=TableFacts(
            columns=tuple(
                ColumnFacts(name=each.name, type=each.type.value, description=each.source)
                for each in stored.table.columns
            ),
            primary_geometry="geom",
            row_count=stored.rows,
        ),
        assets=_assets(load, exported),
        links=(
            LinkFacts(rel="derived_from", href=f"bronze://{parameters.source}", title="source"),
        ),
        software={"docflow": version("docflow")},
        lineage=lineage(report, layer, parameters.source),
        more={
            "docflow:job_id": context.job_id,
            "docflow:accuracy": layer.projection.accuracy,
            "docflow:datetime_source": found.source,
        },
    )


def _assets(load: LoadReport, exported: BlobRef | None) -> dict[str, AssetFacts]:
    is_table = load.place.startswith("postgresql:")
    assets = {
        "table": AssetFacts(
            href=load.place if is_table else f"silver://{load.place}",
            media_type=_TABLE if is_table else GEOPACKAGE,
            roles=("data",),
            title=load.table,
        )
    }
    if exported is not None:
        assets["geoparquet"] = AssetFacts(
            href=f"gold://{exported.name}",
            media_type=PARQUET,
            roles=("data",),
            title="GeoParquet 1.1",
            size=exported.size,
            sha256=exported.sha256,
        )
    return assets


def outputs_of(result: JsonObject) -> JobOutputs:
    """What a page shows of loaded layers: exports, where they lie, what was done to them."""
    layers: Sequence[JsonObject] = result.get("layers", ())
    places = [each["footprint"] for each in layers if "footprint" in each]
    notes: list[str] = list(result.get("left_out", ()))
    for each in layers:
        if each["rejected"]:
            notes.append(f"{each['table']}: {each['rejected']:,} features were rejected")
        notes += [f"{each['table']}: {note}" for note in each["notes"]]
    return JobOutputs(
        footprint={"type": "GeometryCollection", "geometries": places} if places else None,
        files=tuple(
            OutputFile(
                uri=each["export"],
                title=f"{each['table']}.parquet",
                media_type=PARQUET,
                size=each["export_bytes"],
            )
            for each in layers
            if "export_bytes" in each
        ),
        notes=JobOutputs.shown(notes),
    )


def outline(extent: tuple[float, float, float, float]) -> dict[str, Any]:
    west, south, east, north = extent
    if west == east and south == north:
        return {"type": "Point", "coordinates": [west, south]}
    if west == east or south == north:
        return {"type": "LineString", "coordinates": [[west, south], [east, north]]}
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [ring]}


def _collection(id: str) -> dict[str, Any]:
    return build_collection(
        CollectionFacts(id=id, description="Vector data that docflow has loaded.")
    )
