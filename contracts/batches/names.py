"""Which batch, and what everything that belongs to it is called."""

import re
from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator, Field, StringConstraints

from contracts.base import Contract

TASK_QUEUE: Final = "batches"
"""Where cases and batches run, and whatever is done to resources in the cloud.

Releases before loaded documents here too: its workers still do."""
LOADING_TASK_QUEUE: Final = "batches-loading"
"""Where documents are loaded, in slots of their own."""

LARGEST_ID: Final = 1_000_000_000
"""Numbers in a filter policy of SNS end here."""
FUNCTION_NAME_CHARACTERS: Final = 64
QUEUE_NAME_CHARACTERS: Final = 80
LONGEST_PREFIX: Final = FUNCTION_NAME_CHARACTERS - len("_doc_loader_") - 2 * 10 - 1
"""With the two largest ids, the function's name still fits."""

Id = Annotated[int, Field(ge=1, le=LARGEST_ID)]
"""Of a case or a batch."""
Prefix = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=LONGEST_PREFIX)
]
"""Begins the name of every resource, and sets one installation apart from another."""
Arn = Annotated[str, StringConstraints(pattern=r"^arn:[^\s]+$", max_length=512)]


def _check_document_id(text: str) -> str:
    if not text.isprintable() or any(character in "/\\" for character in text):
        raise ValueError("must be printable, without slashes")
    if text != text.strip():
        raise ValueError("must not begin or end with a space")
    return text


DocumentId = Annotated[
    str, StringConstraints(min_length=1, max_length=200), AfterValidator(_check_document_id)
]
"""Names a document within its case; part of a workflow id."""


class BatchKey(Contract):
    """One batch of one case."""

    case_id: Id
    batch_id: Id

    @property
    def workflow_id(self) -> str:
        """Of the run that keeps the batch's life."""
        return f"batch/{self.case_id}/{self.batch_id}"

    @property
    def case_workflow_id(self) -> str:
        """Of the run that keeps the case's batches in order."""
        return f"case/{self.case_id}"

    @property
    def fairness_key(self) -> str:
        """By which cases take turns in a task queue."""
        return self.case_workflow_id

    @property
    def load_prefix(self) -> str:
        """What the workflow ids of its document loads begin with."""
        return f"load/{self.case_id}/{self.batch_id}/"

    @property
    def group_prefix(self) -> str:
        """What the workflow ids of its groups of documents begin with."""
        return f"load-group/{self.case_id}/{self.batch_id}/"

    def __str__(self) -> str:
        return f"batch {self.batch_id} of case {self.case_id}"


class Names(NamedTuple):
    """What the resources of one batch are called."""

    queue: str
    dead_letters: str
    function: str
    policy: str
    """Inline policy of the function's role."""


def names_of(prefix: str, key: BatchKey) -> Names:
    """The names of a batch's resources.

    Raises:
        ValueError: One would be too long for AWS; the message says which, and by how much.
    """
    stem = f"{prefix}_doc_loader_{key.case_id}_{key.batch_id}"
    names = Names(stem, f"{stem}_dlq", stem, stem)
    for name, most in (
        (names.function, FUNCTION_NAME_CHARACTERS),
        (names.dead_letters, QUEUE_NAME_CHARACTERS),
    ):
        if len(name) > most:
            raise ValueError(
                f"the name {name!r} has {len(name)} characters, AWS takes {most}: "
                f"choose a prefix that is {len(name) - most} shorter"
            )
    return names


def key_of(prefix: str, name: str) -> BatchKey | None:
    """Which batch a resource of that name belongs to; None: not one of ours."""
    found = re.fullmatch(
        rf"{re.escape(prefix)}_doc_loader_([1-9]\d{{0,9}})_([1-9]\d{{0,9}})(?:_dlq)?", name
    )
    if found is None:
        return None
    case_id, batch_id = int(found[1]), int(found[2])
    if max(case_id, batch_id) > LARGEST_ID:
        return None
    return BatchKey(case_id=case_id, batch_id=batch_id)
