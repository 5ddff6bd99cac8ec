"""How many documents of a batch are in which state."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import and_, func, literal, not_, select, tuple_, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.models.batches import document_versions, documents
from contracts.batches import BatchKey, DocumentCounts, DocumentState

AT_ONCE: Final = 500
"""Batches that one query counts; each is six of its parameters."""


async def counts_of(
    connection: AsyncConnection, keys: Sequence[BatchKey]
) -> dict[BatchKey, DocumentCounts]:
    """Documents by state, of each of these batches.

    A document is counted in the batch whose message is current. `superseded` are those of which a
    batch has brought a file, and another batch has the current one. `found` are, of all these, the
    files that were found in other documents.
    """
    numbers = defaultdict[BatchKey, dict[str, int]](dict)
    for first in range(0, len(keys), AT_ONCE):
        for row in await connection.execute(_query(keys[first : first + AT_ONCE])):
            case_id, batch_id, state, number = tuple(row)
            numbers[BatchKey(case_id=case_id, batch_id=batch_id)][state] = number
    return {key: DocumentCounts(**numbers[key]) for key in keys}


def _query(keys: Sequence[BatchKey]) -> Any:
    current, former = documents.c, document_versions.c
    wanted = [(key.case_id, key.batch_id) for key in keys]

    def is_wanted(columns: Any) -> Any:
        return tuple_(columns.case_id, columns.batch_id).in_(wanted)

    by_state = (
        select(current.case_id, current.batch_id, current.state, func.count())
        .where(is_wanted(current))
        .group_by(current.case_id, current.batch_id, current.state)
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
            former.case_id,
            former.batch_id,
            literal(DocumentState.SUPERSEDED.value),
            func.count(former.document_id.distinct()),
        )
        .where(is_wanted(former), not_(still_its_own))
        .group_by(former.case_id, former.batch_id)
    )
    found = (
        select(current.case_id, current.batch_id, literal("found"), func.count())
        .where(is_wanted(current), current.parent_id.is_not(None))
        .group_by(current.case_id, current.batch_id)
    )
    return union_all(by_state, replaced, found)
