"""How many documents of a batch are in which state."""

from collections import defaultdict
from typing import Any

from sqlalchemy import and_, func, literal, not_, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.models.batches import document_versions, documents
from contracts.batches import BatchKey, DocumentCounts, DocumentState


async def counts_of(
    connection: AsyncConnection, keys: list[BatchKey]
) -> dict[BatchKey, DocumentCounts]:
    """Documents by state, of each of these batches.

    A document is counted in the batch whose message is current. `superseded` are those of which a
    batch has brought a file, and another batch has the current one. `found` are, of all these, the
    files that were found in other documents.
    """
    numbers = defaultdict[BatchKey, dict[str, int]](dict)
    for case_id in sorted({key.case_id for key in keys}):
        mine = [key.batch_id for key in keys if key.case_id == case_id]
        for row in await connection.execute(_query(case_id, mine)):
            batch_id, state, number = tuple(row)
            numbers[BatchKey(case_id=case_id, batch_id=batch_id)][state] = number
    return {key: DocumentCounts(**numbers[key]) for key in keys}


def _query(case_id: int, batch_ids: list[int]) -> Any:
    current, former = documents.c, document_versions.c
    by_state = (
        select(current.batch_id, current.state, func.count())
        .where(current.case_id == case_id, current.batch_id.in_(batch_ids))
        .group_by(current.batch_id, current.state)
    )
    still_its_own = (
        select(current.document_id)
        .where(
            and_(
                current.case_id == former.case_id,
                current.document_id == former.document_id,
                current.batch_id == former.batch_id,
            )
        )
        .exists()
    )
    replaced = (
        select(
            former.batch_id,
            literal(DocumentState.SUPERSEDED.value),
            func.count(former.document_id.distinct()),
        )
        .where(former.case_id == case_id, former.batch_id.in_(batch_ids), not_(still_its_own))
        .group_by(former.batch_id)
    )
    found = (
        select(current.batch_id, literal("found"), func.count())
        .where(
            current.case_id == case_id,
            current.batch_id.in_(batch_ids),
            current.parent_id.is_not(None),
        )
        .group_by(current.batch_id)
    )
    return union_all(by_state, replaced, found)
