"""Runs of every pipeline, as people list, find and answer them."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from workflows.shared.contracts import PlainRecord, served


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


class RunRecord(PlainRecord):
    """A run of any pipeline."""

    id: Annotated[str, served("Workflow id under which people know it", "run/P1/T1")]
    pipeline: Annotated[str, served("Whose run it is", "its-name")]
    kind: Annotated[str, served("Document type, job type, type of import, or queue", "mto")]
    key: Annotated[str, served("What people may write instead of its id", "P1/T1")]
    short: Annotated[str, served("The part of the key that people know, as a task id", "T1")]
    title: Annotated[str | None, served("The file or subject that it is about", "list.xlsx")] = None
    state: Annotated[RunState, served("Where it stands", RunState.RUNNING)]
    own_state: Annotated[str, served("The state that its pipeline gives it", "running")]
    needs_attention: Annotated[bool, served("It waits for a person's answer", False)] = False
    reason: Annotated[str | None, served("Why it is in this state, or what to know", None)] = None
    waits_for: Annotated[
        str | None, served("Workflow id of the outage that it waits for", "outage/scanner")
    ] = None
    counts: Annotated[
        dict[str, int], served("Its rows, documents or tasks by outcome", {"created": 12})
    ]
    project: Annotated[str | None, served("Project, or account of a transfer", "P1")] = None
    organisation_id: Annotated[int | None, served("Organisation that it belongs to", 3)] = None
    owner: Annotated[str | None, served("Who started it", "ann")] = None
    links: Annotated[dict[str, str], served("Blobs by what they are", {"report": "r.xlsx"})]
    answers_at: Annotated[str, served("Workflow id of the run that takes its answers", "run/P1/T1")]
    created_at: Annotated[datetime, served("When it was accepted", "2026-01-03T10:00:00Z")]
    changed_at: Annotated[datetime, served("When it changed last", "2026-01-03T10:00:00Z")]
    ended_at: Annotated[datetime | None, served("When it ended; null: it is open", None)] = None

    @property
    def is_open(self) -> bool:
        """It has not ended, as far as it could write so."""
        return self.ended_at is None

    def is_in(self, state: str) -> bool:
        """Whether it is in a state, in lower case: that for people, or another of its pipeline."""
        return state == (self.state if state in tuple(RunState) else self.own_state.lower())


@dataclass(frozen=True)
class RunChange:
    """A run as it was after a change."""

    run: RunRecord
    revision: int
    """Grows with each transaction that changes runs."""


@dataclass(frozen=True)
class Visible:
    """Whose things a person may see."""

    organisations: Collection[int]
    """What belongs to one of these."""
    others: bool
    """What belongs to no organisation as well."""

    def shows(self, organisation_id: int | None) -> bool:
        """Whether the person may see what belongs to an organisation, or to none."""
        return self.others if organisation_id is None else organisation_id in self.organisations


@dataclass(frozen=True)
class RunFilter:
    """Which runs are listed."""

    limit: int
    visible: Visible | None = None
    """None: all."""
    pipelines: Collection[str] | None = None
    """None: all."""
    state: str | None = None
    """For people, or another one of a pipeline; in upper or lower case."""
    kind: str | None = None
    project: str | None = None
    needs_attention: bool | None = None
    attention_of: Collection[str] = ()
    """Workflow ids of runs that need attention although their rows do not say so."""
    owner: str | None = None
    reason: str | None = None
    """Only those whose reason holds this text, in upper or lower case."""
    text: str | None = None
    """Words in upper or lower case, each of which begins a word of the title, the project or the
    short form; or an id or key. Of the newest runs, any part of the title as well."""
    id: str | None = None
    """Only the run of this workflow id."""
    ids: Collection[str] | None = None
    """Only the runs of these workflow ids; None: all."""
    since: datetime | None = None
    """Only those that changed then or later, UTC."""
    until: datetime | None = None
    """Only those that changed earlier, UTC."""
    oldest_first: bool = False
    """The list begins with the oldest change; else with the newest."""
    before: datetime | None = None
    """Only those that come behind a change of this moment, UTC."""
    behind: str | None = None
    """Id of the last run of a page, which changed at `before`: those of that very moment that come
    behind it as well."""
