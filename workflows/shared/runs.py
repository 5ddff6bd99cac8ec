"""Runs of every pipeline, as people list, find and answer them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from pydantic import BaseModel, ConfigDict, Field


class RunState(StrEnum):
    """Where a run stands; its pipeline may have finer states of its own."""

    RUNNING = "running"
    WAITING = "waiting"
    """For what it needs or for its turn; it continues by itself."""
    NEEDS_ATTENTION = "needs_attention"
    """For a person's answer."""
    COMPLETED = "completed"
    COMPLETED_WITH_PROBLEMS = "completed_with_problems"
    """It has ended well, and something was left out or rejected."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"

    @property
    def is_open(self) -> bool:
        """The run has not ended."""
        return self in (RunState.RUNNING, RunState.WAITING, RunState.NEEDS_ATTENTION)


ACCEPTED: Final = "accepted"
"""`own_state` of a run that Temporal has accepted and no worker has begun."""


class RunRecord(BaseModel):
    """A run, as it is stored, listed and served."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    id: str = Field(description="Workflow id under which people know it")
    pipeline: str
    kind: str = Field(description="Document type, job type, type of import, or queue")
    key: str = Field(description="What people may write instead of its id")
    short: str = Field(description="The part of the key that people know, as a task id")
    title: str | None = Field(default=None, description="The file or subject that it is about")
    state: RunState
    own_state: str = Field(description="The state that its pipeline gives it")
    needs_attention: bool = Field(default=False, description="It waits for a person's answer")
    reason: str | None = Field(default=None, description="Why it is in this state, or what to know")
    waits_for: str | None = Field(
        default=None, description="Workflow id of the outage that it waits for"
    )
    counts: Mapping[str, int] = Field(default_factory=dict[str, int])
    project: str | None = Field(default=None, description="Project, or account of a transfer")
    organisation_id: int | None = None
    owner: str | None = Field(default=None, description="Who started it")
    links: Mapping[str, str] = Field(default_factory=dict[str, str], description="Blobs by name")
    answers_at: str = Field(description="Workflow id of the run that takes its answers")
    created_at: datetime
    changed_at: datetime
    ended_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        """It has not ended, as far as it could write so."""
        return self.ended_at is None

    def is_in(self, state: str) -> bool:
        """Whether it is in a state, in lower case: that for people, or another of its pipeline."""
        return state == (self.state if state in tuple(RunState) else self.own_state.lower())


@dataclass(frozen=True)
class RunFilter:
    """Which runs are listed."""

    limit: int
    pipelines: Collection[str] | None = None
    """None: all."""
    state: str | None = None
    """For people, or another one of a pipeline; in upper or lower case."""
    kind: str | None = None
    project: str | None = None
    before: datetime | None = None
    """Only those that changed earlier, UTC."""
    behind: str | None = None
    """Id of the last run of a page, which changed at `before`: those of that very moment that come
    behind it as well."""
