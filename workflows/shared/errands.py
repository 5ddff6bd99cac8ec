"""Errands: what a person asks of a pipeline's worker, because only that has the keys for it."""

from typing import Annotated, Any, Final

from pydantic import Field

from workflows.shared.contracts import Contract, Person

ERRAND: Final = "Errand"
"""Name of the workflow type."""
ERRAND_PREFIX: Final = "errand"
"""What the workflow ids of errands begin with, up to the slash."""
LONGEST_ANSWER: Final = 300_000
"""Characters of an answer."""


class ErrandInput(Contract):
    """Input of an errand."""

    kind: Annotated[str, Field(max_length=60)]
    """What is to be done, as the register of the pipeline names it."""
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    """JSON; what it needs depends on the kind."""
    by: Person = "operator"


class ErrandResult(Contract):
    """What came of an errand."""

    answer: Annotated[str, Field(max_length=LONGEST_ANSWER)] = "null"
    """JSON."""
    refused: Annotated[str, Field(max_length=60)] | None = None
    """Kind of the refusal; None: it was done."""
    problem: Annotated[str, Field(max_length=2_000)] | None = None
    """Why it was refused, for people."""
