"""Cloud resources of a batch, as they are found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from contracts.batches import BatchKey, Resource, StepInput, names_of

WORKFLOW_TAG = "docflow:workflow"
"""Tag of every resource that takes tags; its value is the id of the run that made it."""


@dataclass(frozen=True, slots=True)
class FoundResource:
    """Something that exists in the cloud and is called as docflow would call it."""

    key: BatchKey
    resource: Resource
    name: str
    made_at: datetime | None = None
    """UTC, where the cloud reports it."""
    owner: str | None = None
    """Value of its `WORKFLOW_TAG`; None where a kind of resource takes no tags."""
    details: Mapping[str, str] = field(default_factory=dict[str, str])
    """What an operator wants to know: state, memory, concurrency, depth; what it costs by."""


def unproven(work: StepInput) -> str:
    """Why a batch cannot be loaded whose canaries do not arrive, and where to look."""
    queue = names_of(work.plan.prefix, work.key).queue
    return (
        f"nothing that was published to {work.plan.topic_arn} has reached the queue {queue} "
        f"within {work.delivery} s: look at the filter policy of its subscription "
        f"(filter scope {work.plan.filter_scope}), at the policy of the queue, and at the key of "
        "an encrypted topic or queue"
    )
