"""Files in silver and gold that a newer dataset has replaced: noted, and removed later."""

import hashlib
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from activities.jobs.api import JobResources
from activities.scratch import scratch_folder
from adapters.ports import Blobs
from adapters.ports.catalogue import Catalogue
from contracts.base import Contract

FOLDER: Final = "superseded"
KEEP_HOURS: Final = 168.0
"""That they stay, where a job does not say otherwise."""
_MOST: Final = 100_000


class SupersededFiles(Contract):
    """A note: files of a dataset that are of no further use from some moment on."""

    collection: str
    item: str
    """Of the dataset: a file that it uses again by then stays."""
    due: datetime
    uris: tuple[str, ...] = Field(max_length=_MOST)
    """`silver://name` or `gold://name`."""


async def supersede(
    resources: JobResources, collection: str, item: str, uris: Sequence[str], hours: float
) -> None:
    """Note files that are no longer of use; without a time of grace they are removed at once.

    Args:
        resources: Containers and catalogue.
        collection: Of the dataset.
        item: Its id.
        uris: The files.
        hours: That they stay.
    """
    if not uris:
        return
    due = datetime.now(UTC) + timedelta(hours=hours)
    note = SupersededFiles(collection=collection, item=item, due=due, uris=tuple(uris))
    if hours == 0:
        await remove(resources, note)
        return
    text = note.model_dump_json()
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    with scratch_folder(resources.scratch) as folder:
        path = folder / "note.json"
        path.write_text(text, encoding="utf-8")
        # The earliest come first in a list.
        await resources.silver.upload(path, f"{FOLDER}/{due:%Y-%m-%dT%H%M%S}-{digest}.json")


async def due_notes(
    silver: Blobs, folder: Path, now: datetime, most: int
) -> AsyncIterator[tuple[str, SupersededFiles]]:
    """Notes whose time has come, each with the name of its blob; the earliest first."""
    path = folder / "note.json"
    for blob in await silver.list(f"{FOLDER}/", most):
        if blob.name.count("/") > 1:
            # Of a folder that is not ours.
            continue
        await silver.download(blob.name, path)
        note = SupersededFiles.model_validate_json(path.read_bytes())
        path.unlink()
        if note.due > now:
            return
        yield blob.name, note


async def remove(
    resources: JobResources, note: SupersededFiles, *, dry_run: bool = False
) -> Sequence[str]:
    """Remove the files of a note that the dataset does not use; those that were removed."""
    used = await used_by(resources.catalogue, note.collection, note.item)
    old = [uri for uri in note.uris if uri not in used]
    for uri in () if dry_run else old:
        await delete(resources, uri)
    return old


async def delete(resources: JobResources, uri: str) -> None:
    """Remove a file; one that is gone already is not an error."""
    tier, _, name = uri.partition("://")
    container = {"silver": resources.silver, "gold": resources.gold}[tier]
    await container.delete(name)


async def used_by(catalogue: Catalogue, collection: str, item: str) -> Collection[str]:
    """Files of a dataset as it is catalogued now, and of the items that it links to."""
    whole = await catalogue.item(collection, item)
    if whole is None:
        return ()
    items = [whole]
    for link in whole.get("links", ()):
        if link.get("rel") == "item":
            found = await catalogue.item(collection, str(link["href"]).removeprefix("./"))
            items += [] if found is None else [found]
    return {uri for each in items for uri in files_of(each)}


def files_of(item: Mapping[str, Any]) -> Sequence[str]:
    """Files of an item in silver and gold."""
    hrefs = [str(each["href"]) for each in item.get("assets", {}).values()]
    return [href for href in hrefs if href.startswith(("silver://", "gold://"))]
