"""Times of batches."""

from typing import Annotated, ClassVar, Final

from pydantic import Field

from contracts.batches import Timings
from workers.settings.base import Settings, Whole

_DAY: Final = 24 * 3600

Seconds = Annotated[int, Whole(0, 30 * _DAY)]


class TimingSettings(Settings):
    """[Times](../batches.md#times) of every batch that has none of its own."""

    title: ClassVar[str] = "Times of batches"
    used_by: ClassVar[str] = "bridges and commands of batches"

    settle: Seconds = Field(
        60,
        validation_alias="DOCFLOW_BATCH_SETTLE_SECONDS",
        description="seconds before the first look at its queues",
    )
    poll: Annotated[int, Whole(1, _DAY)] = Field(
        180,
        validation_alias="DOCFLOW_BATCH_POLL_SECONDS",
        description="seconds between two looks",
    )
    hold: Seconds = Field(
        60,
        validation_alias="DOCFLOW_BATCH_HOLD_SECONDS",
        description="seconds that its queue must stay empty",
    )
    max_redrives: Annotated[int, Whole(0, 20)] = Field(
        2,
        validation_alias="DOCFLOW_BATCH_MAX_REDRIVES",
        description="passes over its dead letters",
    )
    grace: Seconds = Field(
        900,
        validation_alias="DOCFLOW_BATCH_GRACE_SECONDS",
        description="seconds that a lock without infrastructure is respected",
    )
    stuck_after: Seconds = Field(
        21_600,
        validation_alias="DOCFLOW_BATCH_STUCK_AFTER_SECONDS",
        description="seconds that it may delay its case without loading",
    )
    delivery: Seconds = Field(
        900,
        validation_alias="DOCFLOW_BATCH_DELIVERY_SECONDS",
        description="seconds that a filter policy may take to work",
    )
    end: Seconds = Field(
        21_600,
        validation_alias="DOCFLOW_BATCH_END_SECONDS",
        description="seconds that BATCH_END_FINISHED may take before the batch parks",
    )
    patience: Seconds = Field(
        21_600,
        validation_alias="DOCFLOW_BATCH_PATIENCE_SECONDS",
        description="seconds that a parked batch waits for an answer",
    )
    slow_after: Seconds = Field(
        86_400,
        validation_alias="DOCFLOW_BATCH_SLOW_AFTER_SECONDS",
        description="seconds that it may load, or drain, before people are asked to look at it",
    )

    @property
    def timings(self) -> Timings:
        """The times, as runs take them."""
        return Timings(**{name: getattr(self, name) for name in Timings.model_fields})
