"""Which batch, what belongs to it is called, how it is run, and the states that it may be in."""

import re
from enum import StrEnum
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import AfterValidator, Field, StringConstraints

from workflows.shared.contracts import Contract, WireContract

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


class LoaderStatus(StrEnum):
    """`loader_status` of a batch; the last six are final."""

    WAITING = "waiting"
    PROCESSING = "processing"
    COMPLETE = "complete"
    INCOMPLETE = "in-complete"
    CANCELLED = "cancelled"
    FAILED = "failed"
    SKIPPED = "skipped"
    TERMINATED = "terminated"
    """Its run was ended from outside."""

    @property
    def terminal(self) -> bool:
        """Nothing happens to the batch any more, unless it is started again."""
        return self not in (LoaderStatus.WAITING, LoaderStatus.PROCESSING)


class ValidationOutcome(StrEnum):
    """Whether a batch that was started may be built."""

    SKIP_CANCELLED = "skip_cancelled"
    """It was cancelled: there is nothing to do."""
    SKIP_DUPLICATE = "skip_duplicate"
    """It was completed, or its function exists and works."""
    SKIP_INCOMPLETE = "skip_incomplete"
    """Its function exists, but no run is loading the batch."""
    REQUEUE_DB_ERROR = "requeue_db_error"
    """The database is busy: retried after a pause. An outage of it is waited for instead."""
    BLOCKED = "blocked"
    """Another batch of the case is loading, or may be: asked again when that may have ended."""
    CONTINUE = "continue"
    """The batch is ours now, and in `processing`."""

    @property
    def skips(self) -> bool:
        """The batch is left alone."""
        return self.value.startswith("skip_")


class Purpose(StrEnum):
    """What a run does with a batch."""

    LOAD = "load"
    REDRIVE = "redrive"
    """Try the dead letters that an earlier run kept."""
    RETRY_FAILED = "retry-failed"
    """Try them, and the documents that were recorded as failed."""
    SWEEP = "sweep"
    """Remove what a run that was terminated left behind."""

    @property
    def tries_again(self) -> bool:
        """What an earlier run could not load is tried once more."""
        return self in (Purpose.REDRIVE, Purpose.RETRY_FAILED)


class Phase(StrEnum):
    """Where a run stands."""

    VALIDATING = "validating"
    BLOCKED = "blocked"
    PROVISIONING = "provisioning"
    LOADING = "loading"
    DRAINING = "draining"
    REDRIVING = "redriving"
    ENDING = "ending"
    TEARING_DOWN = "tearing down"
    PARKED = "parked"
    DONE = "done"


class Resource(StrEnum):
    """What a batch is made of; the order is that of its making."""

    QUEUE = "queue"
    DEAD_LETTERS = "dead-letter queue"
    REDRIVE_POLICY = "redrive policy"
    QUEUE_POLICY = "queue policy"
    SUBSCRIPTION = "subscription"
    PERMISSIONS = "permissions"
    FUNCTION = "function"
    DELIVERY = "proof of delivery"
    MAPPING = "event source mapping"
    CONCURRENCY = "reserved concurrency"


class ResourceState(StrEnum):
    """Outcome of a resource."""

    CREATING = "creating"
    READY = "ready"
    DELETING = "deleting"
    GONE = "gone"
    KEPT = "kept"
    LEFT = "left behind"
    """It could not be deleted; the sweeper tries again."""
