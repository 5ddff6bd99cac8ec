"""Settings of the `spreadsheets` pipeline."""

from typing import Annotated, ClassVar, Final

from pydantic import Field

from workers.shared.settings.base import Whole
from workers.shared.settings.common import AddressSettings
from workflows.spreadsheets.runs import Patience

_DAY: Final = 24 * 3600
EXPORTS_READ_AT_ONCE: Final = 2
"""Corrected exports that a gateway reads side by side; the others wait. A person may have saved
one as XLS or ODS, whose reader takes much memory."""

Days = Annotated[int, Whole(1, 3650)]


class SpreadsheetSettings(AddressSettings):
    """Limits of uploads, and how long imports wait for people."""

    title: ClassVar[str] = "Uploads and answers"
    used_by: ClassVar[str] = "`docflow gateway`, the bridge of imports"

    upload_limit: Annotated[int, Whole(1, 100_000, unit=1_000_000)] = Field(
        500_000_000,
        validation_alias="DOCFLOW_UPLOAD_LIMIT_MB",
        description="megabytes of one upload",
    )
    """Bytes of one file."""
    create_per_minute: Annotated[int, Whole(1, 100_000)] = Field(
        30,
        validation_alias="DOCFLOW_CREATE_PER_MINUTE",
        description="uploads of one user in a minute",
    )
    remind_after_days: Days = Field(
        3,
        validation_alias="DOCFLOW_REMIND_AFTER_DAYS",
        description="days until the first reminder of an import that waits for an answer, as set "
        "where it was uploaded",
    )
    remind_every_days: Days = Field(
        7, validation_alias="DOCFLOW_REMIND_EVERY_DAYS", description="days between reminders"
    )
    escalate_after_days: Days = Field(
        14,
        validation_alias="DOCFLOW_ESCALATE_AFTER_DAYS",
        description="days until `DOCFLOW_ESCALATE_TO` is notified as well",
    )
    abandon_after_days: Days = Field(
        90,
        validation_alias="DOCFLOW_ABANDON_AFTER_DAYS",
        description="days until the import is cancelled",
    )
    undo_within_days: Days = Field(
        30,
        validation_alias="DOCFLOW_UNDO_WITHIN_DAYS",
        description="days after its end in which an import can be undone",
    )

    @property
    def patience(self) -> Patience:
        """How long runs wait for answers, as they take it."""
        return Patience(
            remind_after=self.remind_after_days * _DAY,
            remind_every=self.remind_every_days * _DAY,
            escalate_after=self.escalate_after_days * _DAY,
            abandon_after=self.abandon_after_days * _DAY,
            undo_within=self.undo_within_days * _DAY,
        )
