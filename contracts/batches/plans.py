"""How a batch is run: read once, and kept in the run."""

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from contracts.base import Contract, WireContract
from contracts.batches.names import Arn, Prefix

Seconds = Annotated[int, Field(ge=0, le=30 * 24 * 3600)]
Pause = Annotated[int, Field(ge=1, le=24 * 3600)]
"""Seconds between two looks."""

VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]+$", max_length=64)]
VariableValue = Annotated[str, StringConstraints(max_length=256)]
"""Lambda takes 4 KB for all variables together."""

TagName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_.+@/=-][A-Za-z0-9 _.+@/=-]*$", max_length=128)
]
"""Without colons: names with a prefix are those of AWS and docflow."""
TagValue = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9 _.:/=+@-]*$", max_length=256)]
KmsKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9:/_-]+$", max_length=256)]
"""Id, ARN or alias of a key, as SQS takes it."""

API_KEY: Final = "TEMPORAL_API_KEY"
"""Variable that no function has: everyone who may read a function would read the key."""
API_KEY_SECRET: Final = "TEMPORAL_API_KEY_SECRET"  # noqa: S105 - a name
"""Variable of a function: ARN or name of the secret of Secrets Manager with the key of Temporal."""

FEWEST_AT_ONCE: Final = 2
MOST_AT_ONCE: Final = 1000
"""What an event source mapping takes as its `MaximumConcurrency`."""

LONGEST_RETENTION: Final = 14 * 24 * 3600
"""Seconds that a queue of SQS keeps a message at most."""


class Timings(WireContract):
    """Every time that a batch waits for, in seconds, and how often it redrives."""

    settle: Seconds = 60
    """Between JOB_FINISHED and the first look at the counters, which lag behind."""
    poll: Pause = 180
    """Between two looks at the counters."""
    hold: Seconds = 60
    """How long a queue must stay empty before it counts as drained."""
    max_redrives: Annotated[int, Field(ge=0, le=20)] = 2
    """Passes over the dead letters; the last one is final."""
    grace: Seconds = 15 * 60
    """How long a lock without a function is respected."""
    stuck_after: Seconds = 6 * 3600
    """How long a batch may delay its case without being in `processing`."""
    delivery: Seconds = 15 * 60
    """How long a filter policy may take to work."""
    end: Seconds = 6 * 3600
    """How long BATCH_END_FINISHED may take before a person is asked."""
    patience: Seconds = 6 * 3600
    """How long a step that failed permanently waits for a person before the batch is given up."""
    slow_after: Seconds = 24 * 3600
    """How long a batch may load, and drain, before people are asked to look at it."""


class BatchPlan(Contract):
    """What a batch is built from; made by `batches.plan`."""

    prefix: Prefix
    topic_arn: Arn
    source_function: Annotated[
        str, StringConstraints(pattern=r"^[A-Za-z0-9:_/-]+$", max_length=140)
    ]
    """The function that every batch's own is cloned from: name or ARN."""
    grants: tuple[Arn, ...] = Field(default=(), max_length=16)
    """ARNs of secrets and database users that the function may use."""
    environment: dict[VariableName, VariableValue] = Field(
        default_factory=dict[str, str], max_length=24
    )
    """Of the function, beyond what its source has."""
    concurrency: Annotated[int, Field(ge=FEWEST_AT_ONCE, le=MOST_AT_ONCE)] = 10
    """Reserved for the function, and `MaximumConcurrency` of its mapping."""
    batch_size: Annotated[int, Field(ge=1, le=10)] = 10
    """Messages per invocation."""
    max_receives: Annotated[int, Field(ge=1, le=1000)] = 3
    """Receives of a message before it is a dead letter."""
    retention: Annotated[int, Field(ge=60, le=LONGEST_RETENTION - 1)] = 4 * 24 * 3600
    """Seconds that the queue keeps a message; the dead letters are kept for the longest time."""
    filter_scope: Literal["MessageAttributes", "MessageBody"] = "MessageAttributes"
    """Where the publisher of documents puts eventType, caseId and batchId."""
    with_function: bool = True
    """False: there is no Lambda; `docflow bridge batch-loader` polls the queue."""
    static_permissions: bool = False
    """The function's role has one policy for the queues of all batches, made by its owner; releases
    before made a policy for each batch."""
    leases: bool = False
    """The batch takes leases of the limits of the account before anything is built."""
    proof_by_timer: bool = False
    """The run waits between two looks for a canary; releases before waited within one step."""

    kms_key: KmsKey | None = None
    """Encrypts what is in the queues; None: a key of SQS does."""
    tags: dict[TagName, TagValue] = Field(default_factory=dict[str, str], max_length=20)
    """Of queues and function, beside docflow's own."""
    canaries: Annotated[int, Field(ge=1, le=20)] = 1
    """How many have to arrive, one after the other, before delivery counts as proven."""

    @property
    def needs_grants(self) -> bool:
        """Permissions have to be made: those of the batch, or what the setting asks for."""
        return self.with_function and (bool(self.grants) or not self.static_permissions)


class QueueDepth(Contract):
    """Messages of one queue by state; approximate, and late by a minute or more."""

    visible: int = 0
    delayed: int = 0
    in_flight: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.visible + self.delayed + self.in_flight
