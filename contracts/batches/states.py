"""The states of batches and of what they are built of."""

from enum import StrEnum


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
