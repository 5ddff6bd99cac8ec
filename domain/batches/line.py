"""Which batches of a case wait for which others."""

from collections.abc import Sequence

from contracts.batches import LoaderStatus, WaitingBatch


def waits_for(line: Sequence[WaitingBatch], batch_id: int) -> list[WaitingBatch]:
    """Batches that have to be done, or passed over, before one may begin.

    Args:
        line: The batches of the case that are not done.
        batch_id: The one that waits.

    Returns:
        Those that are loading, and those with a lower number that are not passed over; none for one
        that is loading itself, or done.
    """
    mine = {batch.batch_id: batch for batch in line}.get(batch_id)
    if mine is None or mine.status is LoaderStatus.PROCESSING:
        return []
    return [
        batch
        for batch in line
        if batch.batch_id != batch_id
        and (
            batch.status is LoaderStatus.PROCESSING
            or (batch.batch_id < batch_id and (batch.purpose is not None or not batch.skipped))
        )
    ]


def waited_for_by(line: Sequence[WaitingBatch], batch_id: int) -> list[int]:
    """Numbers of the batches that wait for one."""
    return [
        batch.batch_id
        for batch in line
        if any(other.batch_id == batch_id for other in waits_for(line, batch.batch_id))
    ]
