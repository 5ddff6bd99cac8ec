"""Sources of `process_raster`, and the files that lie beside them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from activities.jobs.api import InputNeeded
from adapters.ports import BlobNotFound, Blobs
from contracts.blobs import BlobRef
from contracts.jobs.rasters import RasterFacts, RasterParameters
from domain.errors import RuleViolation
from domain.jobs.rasters.datasets import (
    sidecars_of,
    unpacked_name,
    world_file,
    world_files_of,
)

_WORLD_CHARACTERS: Final = 10_000


async def with_files_beside(
    blobs: Blobs, name: str, facts: RasterFacts, parameters: RasterParameters, folder: Path
) -> RasterFacts:
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
            by = next(version_of(each) for each in beside if each.name == used)
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
        placed_by: As `RasterFacts` has it.
    """
    try:
        return version_of(await blobs.stat(placed_by.rpartition(" ")[0])) != placed_by
    except BlobNotFound:
        return True


def version_of(blob: BlobRef) -> str:
    """Name and version of a file beside a raster."""
    return f"{blob.name} {(blob.etag or str(blob.size)).replace(' ', '')}"


def refuse_undecided(facts: RasterFacts, name: str, chosen: int | None) -> None:
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
