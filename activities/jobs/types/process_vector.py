"""`process_vector`: a file of vector data becomes tables, exports and items of the catalogue."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

from activities.jobs.api import (
    InputNeeded,
    JobResources,
    JobType,
    StageContext,
    TaskContext,
    TaskDone,
    job_type,
    task,
)
from activities.jobs.completion import KEEP_HOURS, files_of, supersede
from activities.jobs.ports import FeatureLoad, Features, StoredTable
from activities.jobs.stac_items import build_collection, build_item
from adapters.ports.spatial import QuestionOpen, Vectors
from workflows.jobs.datasets import (
    GEOPACKAGE,
    PARQUET,
    AssetInfo,
    CollectionInfo,
    ColumnInfo,
    ItemInfo,
    LinkInfo,
    TableInfo,
)
from workflows.jobs.definitions import Lane, StageDefinition, WorkflowDefinition
from workflows.jobs.progress import fitting
from workflows.jobs.rasters import Acquired, is_mistyped, time_said
from workflows.jobs.records import (
    BYTES,
    OUTPUTS,
    ROWS,
    JobOutputs,
    JsonObject,
    OutputFile,
    TaskStatus,
)
from workflows.jobs.runs import PlannedTask
from workflows.jobs.vectors import (
    LayerReport,
    LoadReport,
    ProcessVectorParameters,
    SourceReport,
    VectorOptions,
    dataset_name,
    item_id,
    lineage,
    load_key,
    summary,
    too_many_rejected,
)
from workflows.shared.contracts import BlobRef
from workflows.shared.errors import RuleViolation

_TABLE: Final = "application/x.postgis-table"

Context = TaskContext[ProcessVectorParameters]


async def publish(context: Context, id: str, item: ItemInfo | None) -> None:
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
) -> ItemInfo:
    parameters = context.parameters
    found = acquired(parameters)
    is_range = found.instant is None
    now = datetime.now(UTC)
    assert stored.extent is not None
    return ItemInfo(
        id=item_id(load.table),
        collection=parameters.collection,
        geometry=outline(stored.extent),
        datetime=found.instant,
        start=found.start if is_range else None,
        end=found.end if is_range else None,
        created=now,
        updated=now,
        title=load.table,
        table=TableInfo(
            columns=tuple(
                ColumnInfo(
                    name=each.name,
                    type=each.type.value,
                    description=each.source.replace("\0", "\ufffd"),
                )
                for each in stored.table.columns
            ),
            primary_geometry="geom",
            row_count=stored.rows,
        ),
        assets=_assets(load, exported),
        links=(LinkInfo(rel="derived_from", href=f"bronze://{parameters.source}", title="source"),),
        software={"docflow": version("docflow")},
        lineage=lineage(report, layer, parameters.source),
        more={
            "docflow:job_id": context.job_id,
            "docflow:accuracy": layer.projection.accuracy,
            "docflow:datetime_source": found.source,
        },
    )


def _assets(load: LoadReport, exported: BlobRef | None) -> dict[str, AssetInfo]:
    is_table = load.place.startswith("postgresql:")
    assets = {
        "table": AssetInfo(
            href=load.place if is_table else f"silver://{load.place}",
            media_type=_TABLE if is_table else GEOPACKAGE,
            roles=("data",),
            title=load.table,
        )
    }
    if exported is not None:
        assets["geoparquet"] = AssetInfo(
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
        CollectionInfo(id=id, description="Vector data that docflow has loaded.")
    )


FOLDER: Final = "vectors"
"""Beginning of the names of blobs, in silver and gold."""


@job_type(
    WorkflowDefinition(
        job_type="process_vector",
        description="Validates, repairs and loads vector data, and catalogues the tables.",
        # 2: keys of GeoPackages and data of KML that were lost are columns.
        version=2,
        total_stages=3,
        stages=(
            StageDefinition(
                stage_number=1,
                stage_name="validate",
                task_type="validate_vector",
                lane=Lane.HEAVY,
            ),
            StageDefinition(
                stage_number=2,
                stage_name="load",
                task_type="load_vector_layer",
                max_parallel_tasks=4,
                timeout_minutes=120,
                depends_on_stage=1,
            ),
            StageDefinition(
                stage_number=3,
                stage_name="catalogue",
                task_type="catalogue_vector_layer",
                max_parallel_tasks=4,
                timeout_minutes=120,
                depends_on_stage=2,
            ),
        ),
    )
)
class ProcessVector(JobType[ProcessVectorParameters]):
    """Validate the file, load its layers, catalogue their tables."""

    parameters = ProcessVectorParameters
    file_parameter = "source"

    def inputs(self, parameters: ProcessVectorParameters) -> Sequence[str]:
        """The file."""
        return (parameters.source,)

    def of_organisation(self, organisation_id: int) -> JsonObject:
        """A collection of its own."""
        return {"collection": f"vectors-{organisation_id}"}

    async def plan(
        self, stage: StageDefinition, context: StageContext[ProcessVectorParameters]
    ) -> AsyncIterator[PlannedTask]:
        """One task for the file, then one for each layer."""
        if stage.stage_number == 1:
            yield PlannedTask(index="0")
            return
        async for done in context.previous():
            if done.status is not TaskStatus.COMPLETED:
                continue
            if stage.stage_number == 3:
                yield PlannedTask(index=done.index, parameters=done.next_stage_params)
                continue
            report = done.next_stage_params["report"]
            for number in range(done.next_stage_params["layers"]):
                yield PlannedTask(
                    index=f"layer-{number}", parameters={"report": report, "layer": number}
                )

    async def aggregate(
        self, stage: StageDefinition, context: StageContext[ProcessVectorParameters]
    ) -> JsonObject:
        """What became of the file and its layers."""
        results = [done.result async for done in context.previous() if done.result]
        if stage.stage_number == 1:
            return results[0] if results else {}
        layers = fitting(results)
        found: dict[str, Any] = {"layers": layers, "more_layers": len(results) - len(layers)}
        if stage.stage_number == 2:
            found[ROWS] = sum(each["inserted"] + each["updated"] for each in results)
        return found

    async def result(self, context: StageContext[ProcessVectorParameters]) -> JsonObject:
        """What was read and left out, and the tables with their items."""
        found = {**context.stage_results.get(1, {}), **context.stage_results.get(3, {})}
        return {**found, OUTPUTS: outputs_of(found).model_dump(mode="json", exclude_none=True)}

    @task("validate_vector")
    async def validate(self, context: Context) -> TaskDone:
        """Read the whole file; keep features and problems of each layer in silver.

        Raises:
            InputNeeded: The file does not say its time, CRS or encoding, or more features were
                rejected than may be.
            UnreadableDocument: It is of another format, damaged or hostile.
        """
        parameters = context.parameters
        acquired(parameters)
        (context.folder / "in").mkdir()
        path = context.folder / "in" / "source"
        found = await context.resources.bronze.download(parameters.source, path)
        _refuse_replaced(context, found)
        out = context.folder / "out"
        out.mkdir()
        context.progress(0.1, "reading")
        vectors: Vectors = context.resources.port(Vectors)
        try:
            report = await vectors.read(path, out, _options(parameters))
        except QuestionOpen as question:
            raise InputNeeded(question.parameter, str(question)) from question
        context.progress(0.8, "keeping what was read")
        layers: list[LayerReport] = []
        for number, layer in enumerate(report.layers):
            names: dict[str, str] = {}
            for suffix, field in (("parquet", "features_blob"), ("jsonl", "problems_blob")):
                names[field] = f"{FOLDER}/{context.key}/{number}.{suffix}"
                await context.resources.silver.upload(out / f"{number}.{suffix}", names[field])
            layers.append(layer.model_copy(update=names))
        whole = report.model_copy(update={"layers": tuple(layers)})
        name = f"{FOLDER}/{context.key}/report.json"
        (out / "report.json").write_text(whole.model_dump_json(), encoding="utf-8")
        await context.resources.silver.upload(out / "report.json", name)
        for layer in layers:
            if question := too_many_rejected(layer, _share(parameters)):
                raise InputNeeded("max_rejected_share", question)
        return TaskDone(
            result={
                "format": whole.format,
                "left_out": list(whole.left_out),
                "report": name,
                BYTES: path.stat().st_size,
            },
            next_stage_params={"report": name, "layers": len(layers)},
        )

    @task("load_vector_layer")
    async def load(self, context: Context) -> TaskDone:
        """Load one layer into its table, all of it or nothing.

        Raises:
            RuleViolation: The mode does not fit the table.
        """
        _, layer = await _layer(context)
        assert layer.features_blob is not None
        path = context.folder / "features.parquet"
        await context.resources.silver.download(layer.features_blob, path)
        parameters = context.parameters
        number = context.task["layer"]
        features: Features = context.resources.port(Features)
        done = await features.load(
            FeatureLoad(
                key=load_key(parameters.mode, context.job_id, context.attempt, number),
                table=layer.table.model_copy(update={"organisation_id": context.organisation_id}),
                mode=parameters.mode,
                upsert_by=parameters.key,
                features=path,
            )
        )
        loaded = done.model_dump(mode="json")
        return TaskDone(
            result=loaded,
            next_stage_params={**context.task, "load": loaded},
        )

    @task("catalogue_vector_layer")
    async def catalogue(self, context: Context) -> TaskDone:
        """Export a table to gold, then make it searchable."""
        report, layer = await _layer(context)
        load = LoadReport.model_validate(context.task["load"])
        features: Features = context.resources.port(Features)
        stored = await features.table(load.table)
        if stored is None:
            raise RuleViolation(f"the table {load.table!r} was dropped since it was loaded")
        result = summary(layer, load)
        exported = await _export(context, stored) if context.parameters.export else None
        if exported is not None:
            result["export"] = f"gold://{exported.name}"
            result["export_bytes"] = exported.size
        if stored.extent is None:
            result["notes"].append("no row has a geometry, so the table is not in the catalogue")
            await publish(context, item_id(load.table), None)
            return TaskDone(result=result)
        result["footprint"] = outline(stored.extent)
        item = item_of(context, report, layer, load, stored, exported)
        await publish(context, item.id, item)
        return TaskDone(result={**result, "collection": item.collection, "item": item.id})


def _options(parameters: ProcessVectorParameters) -> VectorOptions:
    return VectorOptions(
        dataset=parameters.dataset or dataset_name(parameters.source),
        layers=parameters.layers,
        source_crs=parameters.source_crs,
        encoding=parameters.encoding,
        allow_ballpark=parameters.allow_ballpark,
        max_area_change=parameters.max_area_change,
        antimeridian=parameters.antimeridian,
    )


def _share(parameters: ProcessVectorParameters) -> float:
    """Take the former parameter unless it has its default."""
    former = ProcessVectorParameters.model_fields["max_rejected"].default
    own = parameters.max_rejected_share
    return own if parameters.max_rejected == former else max(own, parameters.max_rejected)


def _refuse_replaced(context: Context, found: BlobRef) -> None:
    for each in context.inputs:
        if each.etag and found.etag and each.etag != found.etag:
            raise RuleViolation(
                f"{found.name} was replaced while its job was running; submit the new file"
            )


async def _layer(context: Context) -> tuple[SourceReport, LayerReport]:
    path = context.folder / "report.json"
    await context.resources.silver.download(context.task["report"], path)
    report = SourceReport.model_validate_json(path.read_bytes())
    number: int = context.task["layer"]
    return report, report.layers[number]


async def _export(context: Context, stored: StoredTable) -> BlobRef:
    name = stored.table.name
    path = context.folder / "export.parquet"
    context.progress(0.2, "exporting")
    resources: JobResources = context.resources
    features: Features = resources.port(Features)
    vectors: Vectors = resources.port(Vectors)
    await vectors.export(stored.table, features.rows(name), path)
    blob = f"{FOLDER}/{name}/{context.job_id}/{context.attempt}.parquet"
    return await resources.gold.upload(path, blob)
