"""How long rows are kept."""

from typing import Annotated, ClassVar

from pydantic import Field

from workers.settings.base import Setting, Settings, Whole

_DAYS = 36_500


class RetentionSettings(Settings):
    """How long rows are kept whose run has ended."""

    title: ClassVar[str] = "Retention"
    used_by: ClassVar[str] = "workers"

    import_problems: Annotated[int, Whole(1, _DAYS)] = Field(
        90,
        validation_alias="DOCFLOW_KEEP_PROBLEMS_DAYS",
        description="days that problems and reports of imports are kept after their end",
    )
    # Longer than any queue stores a message: its row is what refuses a redelivery.
    status: Annotated[int, Whole(30, _DAYS)] = Field(
        365,
        validation_alias="DOCFLOW_KEEP_STATUS_DAYS",
        description="days that status rows of imports and transfers are kept after their end, and "
        "rejected messages that were not sent again",
    )
    resubmitted: Annotated[int, Whole(1, _DAYS)] = Field(
        90,
        validation_alias="DOCFLOW_KEEP_RESUBMITTED_DAYS",
        description="days that rejected messages are kept after they were sent again",
    )
    documents: Annotated[
        int | None, Whole(30, _DAYS), Setting(kind="whole number", default="for ever")
    ] = Field(
        None,
        validation_alias="DOCFLOW_KEEP_DOCUMENTS_DAYS",
        description="days that documents of batches, with texts, tags and versions, are kept after "
        "their last change",
    )
