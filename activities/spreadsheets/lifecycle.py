"""The status row of a spreadsheet import, first step to last, and what is kept after it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from temporalio import activity

from activities.shared.failures import Heartbeater, announces, translate_failures
from activities.shared.notifications import deliver
from activities.spreadsheets.store import SqlSpreadsheetStore
from adapters.ports.blobs import Blobs
from adapters.ports.records import Notifications
from workflows.shared.notifications import (
    Notification,
    NotificationKind,
    NotificationPolicies,
    clean,
    notice_id,
)
from workflows.spreadsheets.reviews import DecideRows
from workflows.spreadsheets.runs import (
    ExpiredInput,
    ExpiredPage,
    Finishing,
    PurgeInput,
    PurgeResult,
    RowCounts,
    SaveColumns,
    SpreadsheetInput,
    StatusRecord,
    workflow_id,
)
from workflows.spreadsheets.runs import Notice as FormerNotice


class SpreadsheetLifecycle:
    """Opens, records and closes imports.

    Args:
        store: Tables.
    """

    def __init__(self, store: SqlSpreadsheetStore) -> None:
        self._store = store

    @activity.defn(name="spreadsheets.begin")
    @translate_failures
    async def begin(self, order: SpreadsheetInput) -> None:
        """Open the status row; a second run leaves the one that is there alone."""
        info = activity.info()
        run = info.workflow_id or workflow_id(order.uuid)
        # When the step was first scheduled: the same moment at every attempt.
        await self._store.open(order, run, info.scheduled_time)

    @activity.defn(name="spreadsheets.record")
    @announces(lambda record: record.reason is not None)
    @translate_failures
    async def record(self, record: StatusRecord) -> None:
        """Write one transition; a second run, or one that comes late, changes nothing."""
        await self._store.record(record)

    @activity.defn(name="spreadsheets.finish")
    @translate_failures
    async def finish(self, finishing: Finishing) -> RowCounts:
        """Write the end of an import; a second run changes nothing and answers the same.

        Returns:
            The rows as the progress mark counted them.
        """
        return await self._store.finish(finishing.result, finishing.record)

    @activity.defn(name="spreadsheets.decide_rows")
    @translate_failures
    async def decide_rows(self, work: DecideRows) -> None:
        """Keep rows, or leave them out; a second run changes nothing."""
        async with Heartbeater():
            await self._store.reviews.decide_rows(work)

    @activity.defn(name="spreadsheets.save_columns")
    @translate_failures
    async def save_columns(self, save: SaveColumns) -> None:
        """Write column mappings with their trail; a second run changes nothing."""
        async with Heartbeater():
            await self._store.save_columns(save)


class SpreadsheetNotifications:
    """Sends notices of runs that began to wait before all pipelines shared `notices.send`.

    Args:
        channels: Ways to reach people, by name.
        policies: Who is sent what.
    """

    def __init__(
        self, channels: Mapping[str, Notifications], policies: NotificationPolicies
    ) -> None:
        self._channels, self._policies = channels, policies

    @activity.defn(name="spreadsheets.notify")
    async def notify(self, notice: FormerNotice) -> None:
        """Send one notice.

        A second run sends it again under the same id, by which receivers recognise it as the
        same one. The run's id is part of it, because steps are numbered from 1 in each run.

        Raises:
            ApplicationError: It could not be sent.
        """
        info = activity.info()
        assert info.workflow_id is not None and info.workflow_run_id is not None
        kind, pipeline = NotificationKind(notice.kind), "spreadsheets"
        step = (info.workflow_id, info.workflow_run_id, kind, info.activity_id)
        sent = Notification(
            id=notice_id(*step),
            kind=kind,
            pipeline=pipeline,
            workflow_id=info.workflow_id,
            run_id=info.workflow_run_id,
            at=info.current_attempt_scheduled_time,
            title=clean(notice.filename, 300),
            state=notice.state,
            reason=clean(notice.open, 2_000),
            link=notice.link,
            recipients=self._policies.recipients(pipeline, kind, notice.notify),
            waiting_since=notice.waiting_since,
            assignee=notice.assignee,
            notify=notice.notify,
            about={
                "uuid": notice.uuid,
                "organisation_id": notice.organisation_id,
                "import_type": notice.import_type,
                "filename": notice.filename,
                "open": notice.open,
            },
        )
        if kind in self._policies.of(pipeline).kinds:
            await deliver(self._channels, sent)


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

    def __init__(self, store: SqlSpreadsheetStore, blobs: Blobs) -> None:
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
