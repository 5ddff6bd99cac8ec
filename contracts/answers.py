"""Answers to a parked run. A pipeline may add fields with defaults."""

from typing import Annotated

from pydantic import Field, StringConstraints

from contracts.base import Contract

Person = Annotated[str, StringConstraints(max_length=200)]
"""Who decides: the subject of a token, or a name that an operator typed."""


class Retry(Contract):
    """Try again from the failed step."""

    by: Person | None = None


class Answer(Contract):
    """Answer to a parked run (`retry`, `skip`, `fail`), or the request to stop (`cancel`)."""

    reason: str | None = Field(default=None, max_length=500)
    by: Person | None = None


class OperatorAnswer(Contract):
    """The same where every decision has an author: without a name it is the operator's."""

    by: Person = "operator"
    reason: str | None = Field(default=None, max_length=500)


AnyAnswer = Retry | Answer | OperatorAnswer
