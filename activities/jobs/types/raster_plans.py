"""Plans of the stages of `process_raster`: sources, tiles, datasets."""

from collections.abc import AsyncIterator
from typing import Final

from activities.jobs.api import StageContext
from activities.jobs.types.raster_files import changed_only, put_json
from contracts.jobs import FinishedTask, InputIdentity, PlannedTask, TaskStatus
from contracts.jobs.rasters import DatasetPlan, PlacedAsset, RasterParameters, TileList
from domain.errors import InvalidDocument
from domain.jobs.rasters.datasets import is_sidecar, item_ids
from domain.jobs.rasters.items import BRONZE
from domain.jobs.rasters.tiles import tiles as tiles_of

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
