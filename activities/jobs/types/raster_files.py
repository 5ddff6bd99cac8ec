"""Sources, files and items of rasters: written once, under names of their own, items last."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from activities.jobs.api import InputNeeded, StageContext, TaskContext, TaskDone
from activities.jobs.completion import files_of, supersede
from activities.jobs.stac_items import (
    BRONZE,
    ETAG,
    PLACED_BY,
    RECIPE,
    SILVER,
    SOURCE,
    build_collection,
    build_item,
    dataset_item,
    index_item,
    tile_item,
)
from activities.shared.scratch import scratch_folder
from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound
from workflows.jobs.datasets import COG, CollectionInfo, ItemInfo
from workflows.jobs.progress import thinned
from workflows.jobs.raster_files import (
    recipe,
    sidecars_of,
    unpacked_name,
    world_file,
    world_files_of,
)
from workflows.jobs.rasters import (
    CogInfo,
    DatasetPlan,
    PlacedAsset,
    RasterInfo,
    RasterParameters,
    total,
)
from workflows.jobs.records import InputIdentity, JobOutputs, OutputFile
from workflows.shared.contracts import BlobRef, Contract
from workflows.shared.errors import RuleViolation

_WORLD_CHARACTERS: Final = 10_000


async def with_files_beside(
    blobs: Blobs, name: str, facts: RasterInfo, parameters: RasterParameters, folder: Path
) -> RasterInfo:
    """Facts of a source, placed by the world file beside it if nothing else says its place.

    Every other file that GDAL would have looked at has a note.

    Raises:
        RuleViolation: The world file is none, or there are two that differ.
    """
    raster = unpacked_name(name, facts.member)
    beside = await _beside(blobs, name, raster)
    used: str | None = None
    notes: list[str] = list(facts.notes)
    if facts.transform is None and parameters.transform is None:
        names = {*world_files_of(name), *world_files_of(raster)}
        worlds = [each.name for each in beside if each.name in names]
        transforms = [await _transform(blobs, each, folder) for each in worlds]
        if len(set(transforms)) > 1:
            raise RuleViolation(
                f"{' and '.join(worlds)} place {name} differently; keep the right one"
            )
        if worlds:
            used = worlds[0]
            by = next(version_of_source(each) for each in beside if each.name == used)
            facts = facts.model_copy(update={"transform": transforms[0], "placed_by": by})
            notes.append(f"placed by {used}")
    notes += [
        f"{each.name} lies beside it and was not read" for each in beside if each.name != used
    ]
    return facts.model_copy(update={"notes": tuple(notes)})


async def is_placed_anew(blobs: Blobs, placed_by: str) -> bool:
    """Whether the world file that said the place of a raster has changed since.

    Args:
        blobs: Where it was.
        placed_by: As `RasterInfo` has it.
    """
    try:
        return version_of_source(await blobs.stat(placed_by.rpartition(" ")[0])) != placed_by
    except BlobNotFound:
        return True


def version_of_source(blob: BlobRef) -> str:
    """Name and version of a file beside a raster."""
    return f"{blob.name} {(blob.etag or str(blob.size)).replace(' ', '')}"


def refuse_undecided(facts: RasterInfo, name: str, chosen: int | None) -> None:
    """See that it is known which raster of a file is meant.

    Raises:
        InputNeeded: It is not.
    """
    if not facts.subdatasets or facts.subdataset is not None:
        return
    listed = "; ".join(f"{at}: {each}" for at, each in enumerate(facts.subdatasets[:8], 1))
    wrong = f"there is no number {chosen}: " if chosen is not None else ""
    raise InputNeeded(
        "subdataset",
        f"{wrong}{name} holds {len(facts.subdatasets)} rasters ({listed}); which one is meant?",
    )


async def _beside(blobs: Blobs, name: str, raster: str) -> Sequence[BlobRef]:
    found: list[BlobRef] = []
    for each in dict.fromkeys([*sidecars_of(name), *world_files_of(raster)]):
        try:
            found.append(await blobs.stat(each))
        except BlobNotFound:
            continue
    return found


async def _transform(blobs: Blobs, name: str, folder: Path) -> tuple[float, ...]:
    path = folder / "world"
    await blobs.download(name, path)
    with path.open(encoding="latin-1") as file:
        text = file.read(_WORLD_CHARACTERS)
    path.unlink()
    return world_file(text, name)


C = TypeVar("C", bound=Contract)
JOB: Final = "docflow:job_id"
REPLACED: Final = "docflow:replaces"


async def put(blobs: Blobs, path: Path, name: str) -> None:
    """Upload a file under a name that has never been used; the same bytes again are not an error.

    Raises:
        RuleViolation: Other bytes lie there.
    """
    try:
        await blobs.upload(path, name, overwrite=False)
    except FileExistsError:
        there = path.with_name("there")
        found = await blobs.download(name, there)
        there.unlink()
        with path.open("rb") as file:
            mine = hashlib.file_digest(file, "sha256").hexdigest()
        if found.sha256 != mine:
            raise RuleViolation(
                f"{name} exists with other content, and is never overwritten;"
                " submit the job with --rerun"
            ) from None


async def put_json(context: StageContext[Any], kind: str, value: Contract) -> str:
    """Keep a contract in a blob named after its content; its name."""
    body = value.model_dump_json().encode()
    name = f"{context.job_id}/{kind}/{_digest(body)[:32]}.json"
    with scratch_folder(context.resources.scratch) as folder:
        path = folder / "value"
        path.write_bytes(body)
        await context.resources.silver.upload(path, name)
    return name


async def read_json(blobs: Blobs, name: str, folder: Path, kind: type[C]) -> C:
    """Read a contract out of a blob.

    Raises:
        BlobNotFound: It was removed.
    """
    path = folder / "value.json"
    await blobs.download(name, path)
    try:
        return kind.model_validate_json(path.read_bytes())
    finally:
        path.unlink()


async def changed_only(
    context: StageContext[RasterParameters],
    sources: Mapping[str, InputIdentity],
    ids: Sequence[str],
    version: int,
) -> Collection[str]:
    """Those of some sources that are not catalogued from the same bytes in the same way."""
    wanted = recipe(context.parameters, version)
    changed: set[str] = set()
    for (name, identity), item in zip(sources.items(), ids, strict=True):
        found = await context.resources.catalogue.item(context.parameters.collection, item)
        properties = (found or {}).get("properties", {})
        same = (properties.get(SOURCE), properties.get(ETAG), properties.get(RECIPE))
        placed_by = properties.get(PLACED_BY)
        if same != (identity.uri, version_of(identity.etag, identity.size), wanted) or (
            placed_by is not None and await is_placed_anew(context.resources.bronze, placed_by)
        ):
            changed.add(name)
    return changed


def version_of(etag: str | None, size: int) -> str:
    """Identifies a version of a blob."""
    return etag or f"{size} bytes"


@dataclass(frozen=True)
class Publication:
    """The last step of a dataset."""

    context: TaskContext[RasterParameters]
    plan: DatasetPlan
    version: int
    """Of the job type."""
    replaced: str | None = None
    """Source of the item that has the same id until now, where it is another one."""

    async def noting_replaced(self) -> "Publication":
        """The same, with a note where another source has the id in the catalogue until now."""
        catalogue, collection = self.context.resources.catalogue, self.context.parameters.collection
        found = await catalogue.item(collection, self.plan.item)
        properties = (found or {}).get("properties", {})
        # A task that runs twice finds its own item, which says what it has replaced.
        own = properties.get(JOB) == self.context.job_id
        source = properties.get(REPLACED if own else SOURCE)
        if source is None or source == f"{BRONZE}{self.plan.name}":
            return self
        note = f"it replaces the item {self.plan.item} that was made of {source}"[:500]
        plan = self.plan.model_copy(update={"notes": (*self.plan.notes, note)})
        return replace(self, plan=plan, replaced=source)

    async def single(
        self, cog: CogInfo, asset: str, preview: str, tiles: Sequence[PlacedAsset]
    ) -> TaskDone:
        """Publish one COG."""
        name, size, sha256 = await self._metadata()
        item = dataset_item(
            self.plan,
            cog,
            {"data": asset, "thumbnail": preview, "metadata": name},
            collection=self.context.parameters.collection,
            metadata=(size, sha256),
            now=datetime.now(UTC),
            more=self._more(),
        )
        leftovers = [each.asset for each in tiles]
        await self._publish([item], leftovers)
        return self._done(1, asset=asset, preview=preview, size=cog.size, footprint=item.geometry)

    async def tiled(self, tiles: Sequence[PlacedAsset]) -> TaskDone:
        """Publish an item for each tile, and one for the dataset."""
        collection, now = self.context.parameters.collection, datetime.now(UTC)
        full = [each for each in tiles if each.tile.valid]
        items = [
            tile_item(self.plan, each, collection=collection, now=now, more=self._more())
            for each in full
        ]
        whole = index_item(
            self.plan,
            full or tiles,
            total(each.tile for each in tiles),
            collection=collection,
            metadata=await self._metadata(),
            now=now,
            more=self._more(),
        )
        await self._publish([*items, whole], [])
        return self._done(len(items) + 1, empty=len(tiles) - len(full), footprint=whole.geometry)

    def left_out(self, tiles: Sequence[PlacedAsset], wanted: int) -> TaskDone:
        """Publish nothing of a dataset that lacks tiles."""
        made = f"{len(tiles)} of {wanted} tiles were made in a trial run; nothing was published"
        plan = self.plan.model_copy(update={"notes": (*self.plan.notes, made)})
        return replace(self, plan=plan)._done(0, footprint=None)

    def _done(self, items: int, **more: Any) -> TaskDone:
        plan = self.plan
        return TaskDone(
            result={
                "item": plan.item,
                "collection": self.context.parameters.collection,
                "items": items,
                "source": plan.name,
                "notes": list(plan.notes),
                "resampling": "none" if plan.grid.method == "copy" else plan.rules.resampling,
                **more,
            }
        )

    def _more(self) -> dict[str, Any]:
        plan = self.plan
        return {
            SOURCE: f"bronze://{plan.name}",
            ETAG: version_of(plan.etag, plan.size),
            RECIPE: recipe(self.context.parameters, self.version),
            JOB: self.context.job_id,
            "docflow:notes": list(plan.notes),
            **({PLACED_BY: plan.facts.placed_by} if plan.facts.placed_by else {}),
            **({} if self.replaced is None else {REPLACED: self.replaced}),
        }

    async def _metadata(self) -> tuple[str, int, str]:
        """Keep all that is known; name, size and SHA-256 of the blob."""
        body = self.plan.model_dump_json(indent=1, exclude={"prepared", "number"}).encode()
        name = f"{self.context.key}/{self.plan.item}.json"
        path = self.context.folder / "metadata.json"
        path.write_bytes(body)
        await put(self.context.resources.silver, path, name)
        return name, len(body), _digest(body)

    async def _publish(self, facts: Sequence[ItemInfo], leftovers: Sequence[str]) -> None:
        catalogue, parameters = self.context.resources.catalogue, self.context.parameters
        if await catalogue.collection(parameters.collection) is None:
            await catalogue.put_collection(
                build_collection(
                    CollectionInfo(
                        id=parameters.collection,
                        description=f"Rasters of the collection {parameters.collection}.",
                    )
                )
            )
        before = await self._catalogued(facts)
        await catalogue.put_items(parameters.collection, [build_item(each) for each in facts])
        written = {each.id for each in facts}
        for id in before.keys() - written:
            await catalogue.delete_item(parameters.collection, id)
        if self.plan.prepared is not None:
            leftovers = [*leftovers, self.plan.prepared]
        used = {uri for each in facts for uri in _uris(each)}
        old = [f"{SILVER}{name}" for name in leftovers]
        old += [uri for item in before.values() for uri in files_of(item)]
        await supersede(
            self.context.resources,
            parameters.collection,
            self.plan.item,
            [uri for uri in dict.fromkeys(old) if uri not in used],
            parameters.keep_old_hours,
        )

    async def _catalogued(self, facts: Sequence[ItemInfo]) -> dict[str, Mapping[str, Any]]:
        """Items of the dataset as it is catalogued now, those of its tiles as well, by id."""
        catalogue, collection = self.context.resources.catalogue, self.context.parameters.collection
        whole = await catalogue.item(collection, self.plan.item)
        if whole is None:
            return {}
        linked = {
            link["href"].removeprefix("./") for link in whole["links"] if link["rel"] == "item"
        }
        found: dict[str, Mapping[str, Any]] = {self.plan.item: whole}
        for id in linked | {each.id for each in facts}:
            if id not in found and (item := await catalogue.item(collection, id)) is not None:
                found[id] = item
        return found


def _uris(facts: ItemInfo) -> Sequence[str]:
    """Files of an item."""
    return [each.href for each in facts.assets.values()]


def outputs_of(results: Sequence[Mapping[str, Any]]) -> JobOutputs:
    """What a page shows of published datasets: files of all, picture and footprint of one."""
    files = [
        OutputFile(
            uri=f"{SILVER}{each['asset']}", title=each["item"], media_type=COG, size=each["size"]
        )
        for each in results
        if "asset" in each
    ]
    if len(results) != 1:
        notes = [f"{each['item']}: {note}" for each in results for note in each["notes"]]
        return JobOutputs(files=tuple(files), notes=JobOutputs.shown(notes))
    (one,) = results
    return JobOutputs(
        preview=f"{SILVER}{one['preview']}" if "preview" in one else None,
        footprint=thinned(one["footprint"]),
        files=tuple(files),
        notes=JobOutputs.shown(one["notes"]),
    )


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
