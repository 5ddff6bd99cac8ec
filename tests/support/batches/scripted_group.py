"""Scripted activities of groups of documents."""

from collections.abc import Iterable, Mapping, Sequence

from activities.batches.document_group import DocumentGroups
from tests.support.batches.scripted_load import ScriptedLoad
from workflows.batches.loads import (
    AwaitedByMessage,
    DocumentGroupInput,
    DocumentLoadInput,
    DocumentProcessed,
    DocumentState,
    GroupEnd,
    GroupOutcome,
    GroupOutcomes,
)
from workflows.batches.names import BatchKey
from workflows.shared.dependencies import Dependency

KEY = BatchKey(case_id=7, batch_id=3)
DONE, SINGLE, OUTAGE = GroupEnd


class ScriptedGroup(ScriptedLoad):
    """The activity that loads groups, beside the steps of loads of their own.

    Args:
        ends: What becomes of a document in each attempt, by its id; the last of them counts for all
            that follow. A document that is not named is done.
        held: Activities that do not end before they are cancelled.
    """

    def __init__(
        self, ends: Mapping[str, Sequence[GroupEnd]] | None = None, held: Iterable[str] = ()
    ) -> None:
        super().__init__(held=held)
        self.classes = (*self.classes, DocumentGroups)
        self._ends = {name: list(each) for name, each in (ends or {}).items()}
        self.results["load_group"] = self._load_group

    @property
    def groups(self) -> list[list[str]]:
        """The documents of every attempt."""
        orders: list[DocumentGroupInput] = self.received["load_group"]
        return [[load.event.document_id for load in order.loads] for order in orders]

    def record(self, name: str, work: object) -> None:
        """Record groups apart from the steps of loads."""
        if name == "load_group":
            self.calls.append(name)
            self.received[name].append(work)
        else:
            super().record(name, work)

    def _load_group(self, order: DocumentGroupInput) -> GroupOutcomes:
        return GroupOutcomes(
            outcomes=tuple(
                self._outcome(number, load.event.document_id)
                for number, load in enumerate(order.loads)
            )
        )

    def _outcome(self, number: int, document_id: str) -> GroupOutcome:
        left = self._ends.get(document_id, [DONE])
        end = left.pop(0) if len(left) > 1 else left[0]
        if end is DONE:
            return GroupOutcome(number=number, end=end, state=DocumentState.LOADED)
        awaited = AwaitedByMessage(dependency=Dependency.DATABASE) if end is OUTAGE else None
        return GroupOutcome(number=number, end=end, reason="it is so", awaited=awaited)


def group_of(*document_ids: str) -> DocumentGroupInput:
    """A group of documents."""
    return DocumentGroupInput(
        key=KEY,
        loads=tuple(
            DocumentLoadInput(
                event=DocumentProcessed(
                    case_id=KEY.case_id, batch_id=KEY.batch_id, document_id=id, blob_name=f"in/{id}"
                )
            )
            for id in document_ids
        ),
    )
