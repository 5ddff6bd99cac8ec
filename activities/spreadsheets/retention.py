"""Removes what is no longer kept."""

from datetime import timedelta
from typing import Final

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from adapters.ports import Blobs, SpreadsheetStore
from contracts.spreadsheets import ExpiredInput, ExpiredPage, PurgeInput, PurgeResult

UPLOAD_AGE: Final = timedelta(days=7)
"""No upload takes this long, and no run that was accepted waits this long for its first worker: a
file that is older and became no import never will."""
PROPOSAL_AGE: Final = timedelta(days=1)
"""A change of a review is applied within minutes of its request, or its process has died."""


class SpreadsheetRetentionSteps:
    """Purges imports, before-images and leftovers of uploads.

    Args:
        store: Tables.
        blobs: Where files are.
    """

    def __init__(self, store: SpreadsheetStore, blobs: Blobs) -> None:
        self._store = store
        self._blobs = blobs

    @activity.defn(name="spreadsheets.expired")
    @translate_failures
    async def expired(self, work: ExpiredInput) -> ExpiredPage:
        """Name the imports that are due, the oldest first; changes nothing."""
        return await self._store.expired(work.order, work.now)

    @activity.defn(name="spreadsheets.purge")
    @translate_failures
    async def purge(self, work: PurgeInput) -> PurgeResult:
        """Remove files, results and values of imports.

        Of each import the files go first: as long as one is left, the rows still name it. A
        second run continues with the rest, and counts what was left for it.
        """
        purged = 0
        async with Heartbeater() as heart:
            for uuid in work.uuids:
                for file in await self._store.files_of(uuid):
                    await self._blobs.delete(file.name)
                purged += await self._store.purge(uuid, work.now)
                heart.beat(PurgeResult(purged=purged))
        return PurgeResult(purged=purged)

    @activity.defn(name="spreadsheets.purge_leftovers")
    @translate_failures
    async def purge_leftovers(self, work: ExpiredInput) -> PurgeResult:
        """Remove before-images that are of no further use, files that became no import, and changes
        of reviews that were never applied.

        Bounded by the order's `most`; a second run continues with the rest, and counts what was
        left for it.
        """
        order = work.order
        journals = uploads = proposals = 0
        async with Heartbeater() as heart:
            old = work.now - timedelta(seconds=order.undo_after)
            while found := await self._store.purge_journals(
                old, min(order.page, order.most - journals)
            ):
                journals += found
                heart.beat(PurgeResult(journals=journals))
            stale = work.now - UPLOAD_AGE
            while page := await self._store.stale_uploads(
                stale, min(order.page, order.most - uploads)
            ):
                for _, name in page:
                    await self._blobs.delete(name)
                    await self._store.forget_upload(name)
                uploads += len(page)
                heart.beat(PurgeResult(journals=journals, uploads=uploads))
            lost = work.now - PROPOSAL_AGE
            while found := await self._store.purge_proposals(
                lost, min(order.page, order.most - proposals)
            ):
                proposals += found
                heart.beat(PurgeResult(journals=journals, uploads=uploads, proposals=proposals))
        return PurgeResult(journals=journals, uploads=uploads, proposals=proposals)
