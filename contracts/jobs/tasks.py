"""Tasks as they are planned and as they end; both lie in blobs, one line of JSON each."""

from pydantic import Field

from contracts.base import AuthoredContract, Contract
from contracts.jobs.definitions import TaskIndex
from contracts.jobs.records import JsonObject, TaskStatus, Text


class PlannedTask(AuthoredContract):
    """A task to be done, as the plan of its stage says."""

    index: TaskIndex
    parameters: JsonObject = Field(default_factory=dict)


class FinishedTask(Contract):
    """A task at its end, as later stages read it."""

    index: TaskIndex
    ordinal: int
    status: TaskStatus
    parameters: JsonObject = Field(default_factory=dict)
    result: JsonObject = Field(default_factory=dict)
    """In blobs without content when it is too long; job types are given it whole."""
    next_stage_params: JsonObject = Field(default_factory=dict)
    large_result: str | None = None
    """Name of the blob with a long result."""
    error: Text | None = None
    attempts: int = 1
