"""Events of a case, and which of its batches wait."""

from temporalio import activity

from activities.failures import translate_failures
from adapters.ports import BatchStore, OpenRuns
from contracts.batches import BatchKey, LoaderStatus, NoteEvents, SkipBatch, WaitingBatches


class CaseBacklog:
    """Keeps the batches of a case in order.

    Args:
        store: Tables.
        runs: Open runs in Temporal.
    """

    def __init__(self, store: BatchStore, runs: OpenRuns) -> None:
        self._store = store
        self._runs = runs

    @activity.defn(name="batches.note")
    @translate_failures
    async def record_events(self, notes: NoteEvents) -> WaitingBatches:
        """Write events down, and read who waits; a second run writes nothing.

        Returns:
            The batches that are not done, lowest id first, and which of those that are loading
            have a run that is open.
        """
        line = await self._store.note(notes.case_id, notes.events)
        asked = {
            batch.batch_id for batch in line.batches if batch.status is LoaderStatus.PROCESSING
        }
        if notes.running is not None:
            asked.add(notes.running)
        running = {batch_id for batch_id in sorted(asked) if await self._is_open(notes, batch_id)}
        return WaitingBatches(
            batches=tuple(
                batch.model_copy(
                    update={
                        "open_run": batch.status is LoaderStatus.PROCESSING
                        and batch.batch_id in running
                    }
                )
                for batch in line.batches
            ),
            running_open=notes.running in running,
        )

    @activity.defn(name="batches.skip")
    @translate_failures
    async def skip(self, skipped: SkipBatch) -> None:
        """Record that a batch no longer blocks its case; a second run changes nothing."""
        await self._store.skip(skipped.key, skipped.reason)

    async def _is_open(self, notes: NoteEvents, batch_id: int) -> bool:
        key = BatchKey(case_id=notes.case_id, batch_id=batch_id)
        return await self._runs.is_open(key.workflow_id)
