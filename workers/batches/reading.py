"""What people read of a batch beside its state: its timeline, extracts, messages that were lost."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from activities.batches.extracts import BatchMoment, DocumentExtract, WholeExtract
from activities.batches.records import DocumentView, FailedMessage
from workers.batches.labels import DOCUMENTS
from workers.batches.service import BatchRuns, beginning_of
from workers.shared.services.errors import NotFound, TemporalUnavailable
from workers.shared.services.identity import Identity, require_operator
from workers.shared.services.runs import temporal_errors
from workers.shared.services.timeline import timeline_of
from workers.shared.text import N_
from workflows.batches.loads import DocumentState
from workflows.batches.names import BatchKey

if TYPE_CHECKING:
    from activities.batches.extracts import SqlExtracts

CHARACTERS: Final = 5_000
"""Of a document's text that a page shows."""
ENTRIES: Final = 200
"""Of a timeline that a page shows."""
_TEXTS: Final = {
    "created": N_("asked for"),
    "job_finished": N_("all documents were sent"),
    "end_finished": N_("what follows the loading was done"),
}


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """Something that happened to a batch, once or several times in a row."""

    at: datetime
    text: str
    """In English; pages translate the texts that they know."""
    tone: str = ""
    state: DocumentState | None = None
    """Of the documents that it is about."""
    documents: int = 0
    is_last: bool = False
    """The last of several documents; else the first."""
    times: int = 1
    until: datetime | None = None
    """When it happened last, of several times."""
    by: str | None = None
    problem: str | None = None


class BatchReader:
    """Reads batches for operators.

    Args:
        extracts: Tables.
        runs: Of batches in Temporal.
    """

    def __init__(self, extracts: "SqlExtracts", runs: BatchRuns) -> None:
        self._extracts, self._runs = extracts, runs

    async def timeline(self, who: Identity, key: BatchKey) -> Sequence[BatchEntry]:
        """What has happened to a batch, the first first; of a long one, the last.

        While Temporal does not answer, it holds what the tables know.
        """
        require_operator(who, "batches")
        entries = [_of_moment(each) for each in await self._extracts.moments(key)]
        with suppress(TemporalUnavailable), temporal_errors():
            for each in await timeline_of(self._runs.client, key.workflow_id):
                problem = f"{each.reason or ''} {each.problem or ''}".strip() or None
                tone = "bad" if each.problem else "info" if each.event == "state" else ""
                entries.append(BatchEntry(each.at, each.text, tone, by=each.by, problem=problem))
        return _joined(sorted(entries, key=lambda each: each.at))[-ENTRIES:]

    async def heads(
        self, who: Identity, key: BatchKey, shown: Sequence[DocumentView]
    ) -> Mapping[str, DocumentExtract]:
        """What was read of documents of a batch, by their ids."""
        require_operator(who, "batches")
        return await self._extracts.heads(key.case_id, [each.document_id for each in shown])

    async def whole(self, who: Identity, key: BatchKey, document_id: str) -> WholeExtract:
        """One document of a batch.

        Raises:
            Forbidden: The caller is not an operator.
            NotFound: The batch has no such document.
        """
        require_operator(who, "batches")
        found = await self._extracts.whole(key, document_id, CHARACTERS)
        if found is None:
            raise NotFound(f"{key} has no document {document_id!r}")
        return found

    async def recorded(self, who: Identity, key: BatchKey, limit: int) -> Sequence[FailedMessage]:
        """Messages that are recorded as failed; those in the queue are not among them."""
        require_operator(who, "batches")
        found = await self._extracts.failed(key, limit)
        return [each.model_copy(update={"body": beginning_of(each.body)}) for each in found]


def _of_moment(moment: BatchMoment) -> BatchEntry:
    if moment.state is None:
        return BatchEntry(moment.at, _TEXTS[moment.what], "info")
    label = DOCUMENTS[moment.state]
    return BatchEntry(
        moment.at,
        label.text,
        label.tone,
        moment.state,
        moment.documents,
        is_last=moment.what == "last",
    )


def _joined(entries: Sequence[BatchEntry]) -> Sequence[BatchEntry]:
    """The same, with what happened several times in a row as one entry."""
    found: list[BatchEntry] = []
    for each in entries:
        last = found[-1] if found else None
        if last is not None and replace(last, at=each.at, times=1, until=None) == each:
            found[-1] = replace(last, times=last.times + 1, until=each.at)
        else:
            found.append(each)
    return found
