"""`process_raster`: rasters of the bronze container become COGs in silver, and STAC items.

`process_raster`: rasters of the bronze container become COGs in silver, and STAC items.

Stages: validate reads all of a source; chunk fixes the target grid and rewrites what is laid out
badly; process writes a COG for each tile; catalogue puts the tiles together and publishes.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from activities.jobs.api import (
    InputNeeded,
    JobType,
    StageContext,
    TaskContext,
    TaskDone,
    job_type,
    task,
)
from activities.jobs.groups import SourceFiles
from activities.jobs.stac_items import BRONZE
from activities.jobs.types.raster_files import (
    Publication,
    changed_only,
    outputs_of,
    put,
    put_json,
    read_json,
    refuse_undecided,
    with_files_beside,
)
from adapters.files.footprints import refuse_other_planets
from adapters.ports.spatial import PlacedTile, Rasters
from workflows.jobs import rasters as rules
from workflows.jobs.definitions import Lane, OnFailure, StageDefinition, WorkflowDefinition
from workflows.jobs.progress import fitting
from workflows.jobs.raster_files import is_sidecar, item_ids, sidecars_of
from workflows.jobs.rasters import (
    PATTERNS,
    CogInfo,
    DatasetPlan,
    PlacedAsset,
    RasterInfo,
    RasterParameters,
    TileList,
    TileWindow,
    acquired,
    is_mistyped,
    needs_rewriting,
)
from workflows.jobs.rasters import tiles as tiles_of
from workflows.jobs.records import BYTES, OUTPUTS, InputIdentity, JsonObject, TaskStatus
from workflows.jobs.runs import FinishedTask, PlannedTask
from workflows.shared.errors import InvalidDocument, RuleViolation

_REASONS: Final = 3
"""Failures that a job names which failed as a whole."""


async def sources(
    context: StageContext[RasterParameters], version: int
) -> AsyncIterator[PlannedTask]:
    """A task for each source, those left out that are catalogued from the same bytes."""
    parameters = context.parameters
    named = set(parameters.sources)
    chosen = {
        _name(each): each
        for each in context.inputs
        if _name(each) in named or not is_sidecar(_name(each))
    }
    if not chosen:
        raise InvalidDocument("the sources of the job hold no raster, only files beside rasters")
    ids = item_ids(list(chosen), parameters.item)
    is_many = parameters.is_many
    if is_many and parameters.only_changed:
        left = await changed_only(context, chosen, ids, version)
    else:
        left = set(chosen)
    for number, ((name, identity), item) in enumerate(zip(chosen.items(), ids, strict=True)):
        if name in left:
            yield PlannedTask(
                index=f"d{number}" if is_many else "0",
                parameters={
                    "number": number,
                    "name": name,
                    "etag": identity.etag,
                    "size": identity.size,
                    "item": item,
                },
            )


async def good(context: StageContext[RasterParameters]) -> AsyncIterator[FinishedTask]:
    """Tasks that succeeded; when none did, the job has failed.

    Raises:
        InvalidDocument: None succeeded.
    """
    failed: list[str] = []
    done = 0
    async for each in context.previous():
        if each.status is TaskStatus.COMPLETED:
            done += 1
            yield each
        elif len(failed) < _REASONS:
            failed.append(each.error or each.status.value)
    if failed and not done:
        raise InvalidDocument("; ".join(failed))


async def tiles(context: StageContext[RasterParameters]) -> AsyncIterator[PlannedTask]:
    """A task for each tile of each dataset, whose plan goes into a blob."""
    async for each in good(context):
        plan = DatasetPlan.model_validate(each.next_stage_params["plan"])
        name = await put_json(context, "plans", plan)
        before = "" if each.index == "0" else f"{each.index}-"
        for index, window in tiles_of(plan.grid):
            yield PlannedTask(
                index=f"{before}{index}",
                parameters={
                    "dataset": each.index,
                    "plan": name,
                    "window": window.model_dump(mode="json"),
                },
            )


async def datasets(context: StageContext[RasterParameters]) -> AsyncIterator[PlannedTask]:
    """A task for each dataset of which every tile is there."""
    found: dict[str, list[PlacedAsset]] = {}
    plans: dict[str, str] = {}
    broken: dict[str, str] = {}
    async for each in context.previous():
        dataset = each.parameters["dataset"]
        plans[dataset] = each.parameters["plan"]
        if each.status is not TaskStatus.COMPLETED:
            broken.setdefault(dataset, f"{each.index}: {each.error or each.status.value}")
            continue
        found.setdefault(dataset, []).append(PlacedAsset.model_validate(each.result))
    if plans and not plans.keys() - broken.keys():
        raise InvalidDocument("; ".join(list(broken.values())[:_REASONS]))
    for dataset, plan in plans.items():
        if dataset not in broken:
            name = await put_json(context, "tiles", TileList(tiles=tuple(found[dataset])))
            yield PlannedTask(index=dataset, parameters={"plan": plan, "tiles": name})


def _name(identity: InputIdentity) -> str:
    return identity.uri.removeprefix(BRONZE)


VALIDATE, CHUNK, PROCESS, CATALOGUE = range(1, 5)
_TILE_BYTES: Final = 192 << 20
"""Of one tile with all its bands, in memory."""
_MOST_TILES: Final = 100_000


def _stage(number: int, name: str, task_type: str, **more: Any) -> StageDefinition:
    return StageDefinition(
        stage_number=number,
        stage_name=name,
        task_type=task_type,
        on_failure=OnFailure.CONTINUE,
        lane=Lane.HEAVY,
        **more,
    )


@job_type(
    WorkflowDefinition(
        job_type="process_raster",
        description="Makes cloud-optimised GeoTIFFs of rasters, and catalogues them.",
        # 2: bands that lack different pixels are warped each by itself.
        version=2,
        total_stages=4,
        stages=(
            _stage(VALIDATE, "validate", "validate_raster", max_parallel_tasks=100),
            _stage(CHUNK, "chunk", "calculate_tiles", max_parallel_tasks=100),
            _stage(PROCESS, "process", "create_cog_tile", max_parallel_tasks=100),
            _stage(
                CATALOGUE,
                "catalogue",
                "create_stac_record",
                max_parallel_tasks=100,
                timeout_minutes=120,
            ),
        ),
    )
)
class ProcessRaster(JobType[RasterParameters]):
    """Validate, chunk, process, catalogue."""

    parameters = RasterParameters
    file_parameter = "source"

    def __init__(self) -> None:
        self._files = SourceFiles()

    def check(self, parameters: RasterParameters) -> None:
        """Reference systems are of the Earth."""
        for name, text in (("crs", parameters.crs), ("target_crs", parameters.target_crs)):
            if text is not None:
                refuse_other_planets(text, f"parameter {name}")

    def inputs(self, parameters: RasterParameters) -> Sequence[str]:
        """Sources, folders and lists of them."""
        return parameters.sources

    def of_organisation(self, organisation_id: int) -> JsonObject:
        """A collection of its own."""
        return {"collection": f"rasters-{organisation_id}"}

    def beside(self, name: str) -> Sequence[str]:
        """World files, masks, overviews and metadata."""
        return sidecars_of(name)

    async def plan(
        self, stage: StageDefinition, context: StageContext[RasterParameters]
    ) -> AsyncIterator[PlannedTask]:
        """A task for each source, then for each tile, then for each dataset."""
        match stage.stage_number:
            case 1:
                async for planned in sources(context, self.definition.version):
                    yield planned
            case 2:
                async for each in good(context):
                    yield PlannedTask(index=each.index, parameters=each.parameters)
            case 3:
                async for planned in tiles(context):
                    yield planned
            case _:
                async for planned in datasets(context):
                    yield planned

    @task("validate_raster")
    async def validate(self, context: TaskContext[RasterParameters]) -> TaskDone:
        """Decode a source and read what it says."""
        bronze, name = context.resources.bronze, _text(context, "name")
        async with self._source(context) as path:
            chosen = context.parameters.subdataset
            facts = await _rasters(context).inspect(path, context.folder, chosen, name)
            digest, size = await _sha256(path), path.stat().st_size
        refuse_undecided(facts, name, chosen)
        facts = await with_files_beside(bronze, name, facts, context.parameters, context.folder)
        crs, _ = rules.georeferenced(facts, context.parameters)
        refuse_other_planets(crs, f"the reference system of {name}")
        if facts.subdatasets:
            note = f"of its {len(facts.subdatasets)} rasters, number {facts.subdataset}"
            facts = facts.model_copy(update={"notes": (*facts.notes, note)})
        return TaskDone(
            result={**_summary(facts), BYTES: size},
            next_stage_params={"facts": facts.model_dump(mode="json"), "sha256": digest},
        )

    @task("calculate_tiles")
    async def chunk(self, context: TaskContext[RasterParameters]) -> TaskDone:
        """Fix the target grid, and rewrite a source of which windows are read slowly."""
        given = context.predecessor
        assert given is not None
        facts = RasterInfo.model_validate(given.next_stage_params["facts"])
        parameters, name = context.parameters, _text(context, "name")
        try:
            time = acquired(parameters, facts, name)
        except RuleViolation as error:
            if not is_mistyped(parameters.datetime, parameters.datetime_pattern):
                raise
            raise InputNeeded("datetime", str(error)) from error
        if time is None:
            raise InputNeeded(
                "datetime",
                f"when was {name} acquired? Give datetime (an instant, a day or start/end),"
                f" datetime_tag, or datetime_pattern ({', '.join(PATTERNS)})",
            )
        grid = await _rasters(context).grid(rules.grid_order(facts, parameters))
        if (doubt := rules.doubt_about_classes(facts, parameters, grid)) is not None:
            raise InputNeeded(
                "classes",
                f"does {name} hold classes? {doubt[:1].upper()}{doubt[1:]}. Give classes=true, and"
                " they are never averaged, or classes=false if they are measurements",
            )
        pixels = rules.pixel_rules(facts, parameters, grid)
        _refuse_too_much(facts, grid.tile, grid.columns * grid.rows)
        notes = [*facts.notes, *rules.unused(facts, parameters), *grid.notes]
        prepared = None
        if (reason := needs_rewriting(facts, grid)) is not None:
            facts, prepared = await self._rewritten(context, facts)
            pixels = rules.pixel_rules(facts, parameters, grid)
            notes.append(f"rewritten before it was divided: {reason}")
        plan = DatasetPlan(
            number=context.task["number"],
            name=name,
            etag=context.task.get("etag"),
            size=context.task["size"],
            sha256=given.next_stage_params["sha256"],
            item=_text(context, "item"),
            facts=facts,
            grid=grid,
            rules=pixels,
            is_single=grid.width * grid.height * rules.pixel_bytes(facts)
            <= parameters.single_file_bytes,
            prepared=prepared,
            start=time.start,
            end=time.end,
            time_source=time.source,
            notes=tuple(notes),
        )
        return TaskDone(
            result={
                "item": plan.item,
                "tiles": grid.columns * grid.rows,
                "tile": grid.tile,
                "grid": grid.model_dump(mode="json"),
                "notes": notes,
            },
            next_stage_params={"plan": plan.model_dump(mode="json")},
        )

    @task("create_cog_tile")
    async def process(self, context: TaskContext[RasterParameters]) -> TaskDone:
        """Write one tile as a COG."""
        silver, rasters = context.resources.silver, _rasters(context)
        plan = await read_json(silver, _text(context, "plan"), context.folder, DatasetPlan)
        window = TileWindow.model_validate(context.task["window"])
        path = context.folder / "tile.tif"
        async with self._planned(context, plan) as source:
            made = await rasters.tile(
                source,
                plan.facts,
                plan.grid,
                plan.rules,
                window,
                path,
                overviews=False,
                progress=context.progress,
            )
        asset, preview, cog = f"{context.key}/tile.tif", None, None
        if plan.is_single:
            await put(silver, path, asset)
        else:
            asset, preview = f"{context.key}/{plan.item}.tif", f"{context.key}/{plan.item}.png"
            cog = await _published(context, plan, [PlacedTile(path, window)], asset, preview)
        placed = PlacedAsset(
            index=context.index, asset=asset, window=window, tile=made, cog=cog, preview=preview
        )
        return TaskDone(result=placed.model_dump(mode="json"))

    @task("create_stac_record")
    async def catalogue(self, context: TaskContext[RasterParameters]) -> TaskDone:
        """Publish a dataset: its files, then, in one transaction, its items."""
        silver = context.resources.silver
        plan = await read_json(silver, _text(context, "plan"), context.folder, DatasetPlan)
        listed = await read_json(silver, _text(context, "tiles"), context.folder, TileList)
        wanted = sum(1 for _ in tiles_of(plan.grid))
        if len(listed.tiles) < wanted:
            # A trial run: what is published is whole.
            return Publication(context, plan, self.definition.version).left_out(
                listed.tiles, wanted
            )
        if not any(each.tile.valid for each in listed.tiles):
            plan = plan.model_copy(update={"notes": (*plan.notes, "no pixel of it has a value")})
        publication = await Publication(context, plan, self.definition.version).noting_replaced()
        if not plan.is_single:
            return await publication.tiled(listed.tiles)
        found = [
            PlacedTile(context.folder / f"{number}.tif", each.window)
            for number, each in enumerate(listed.tiles)
        ]
        for tile, each in zip(found, listed.tiles, strict=True):
            await silver.download(each.asset, tile.path)
        asset = f"{context.key}/{plan.item}.tif"
        preview = f"{context.key}/{plan.item}.png"
        cog = await _published(context, plan, found, asset, preview)
        return await publication.single(cog, asset, preview, listed.tiles)

    async def aggregate(
        self, stage: StageDefinition, context: StageContext[RasterParameters]
    ) -> JsonObject:
        """How many have ended well, what the first has read and the last has published."""
        done, read, results = 0, 0, list[JsonObject]()
        async for each in context.previous():
            if each.status is TaskStatus.COMPLETED:
                done += 1
                read += each.result.get(BYTES, 0)
                if stage.stage_number == CATALOGUE and len(results) < 100:
                    results.append(each.result)
        if stage.stage_number == CATALOGUE:
            outputs = outputs_of(results).model_dump(mode="json")
            items = fitting(_without_footprint(each) for each in results)
            left = done - len(items)
            return {"datasets": done, "items": items, "more_items": left, OUTPUTS: outputs}
        return {"tasks": done, BYTES: read} if read else {"tasks": done}

    @asynccontextmanager
    async def _source(self, context: TaskContext[RasterParameters]) -> AsyncGenerator[Path]:
        resources, etag = context.resources, context.task.get("etag")
        name = _text(context, "name")
        async with self._files.file(resources.bronze, name, etag, resources.scratch) as path:
            yield path

    @asynccontextmanager
    async def _planned(
        self, context: TaskContext[RasterParameters], plan: DatasetPlan
    ) -> AsyncGenerator[Path]:
        resources = context.resources
        blobs, name, etag = resources.bronze, plan.name, plan.etag
        if plan.prepared is not None:
            blobs, name, etag = resources.silver, plan.prepared, None
        async with self._files.file(blobs, name, etag, resources.scratch) as path:
            yield path

    async def _rewritten(
        self, context: TaskContext[RasterParameters], facts: RasterInfo
    ) -> tuple[RasterInfo, str]:
        target = context.folder / "source.tif"
        async with self._source(context) as path:
            name = _text(context, "name")
            changed = await _rasters(context).prepare(path, facts, target, name)
        name = f"{context.key}/source.tif"
        await put(context.resources.silver, target, name)
        return changed, name


async def _published(
    context: TaskContext[RasterParameters],
    plan: DatasetPlan,
    found: Sequence[PlacedTile],
    asset: str,
    preview: str,
) -> CogInfo:
    path, picture = context.folder / "whole.tif", context.folder / "preview.png"
    cog = await _rasters(context).publish(
        found, plan.grid, plan.rules, path, picture, context.progress
    )
    await put(context.resources.silver, path, asset)
    await put(context.resources.silver, picture, preview)
    return cog


def _refuse_too_much(facts: RasterInfo, tile: int, count: int) -> None:
    if tile * tile * rules.pixel_bytes(facts) > _TILE_BYTES:
        raise RuleViolation(
            f"{len(facts.bands)} bands make tiles of more than {_TILE_BYTES >> 20} MB;"
            " divide the bands into several files"
        )
    if count > _MOST_TILES:
        raise RuleViolation(
            f"the target has {count:,} tiles, and a stage at most {_MOST_TILES:,}; choose a"
            " coarser resolution, or split the raster"
        )


def _summary(facts: RasterInfo) -> JsonObject:
    return {
        "driver": facts.driver,
        "width": facts.width,
        "height": facts.height,
        "bands": len(facts.bands),
        "crs": (facts.crs or "")[:200],
        "notes": list(facts.notes),
    }


def _rasters(context: TaskContext[RasterParameters]) -> Rasters:
    found: Rasters = context.resources.port(Rasters)
    return found


def _without_footprint(result: JsonObject) -> JsonObject:
    return {name: value for name, value in result.items() if name != "footprint"}


def _text(context: TaskContext[RasterParameters], name: str) -> str:
    return str(context.task[name])


async def _sha256(path: Path) -> str:
    def digest() -> str:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    return await asyncio.to_thread(digest)
