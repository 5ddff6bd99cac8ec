"""Settings of worker processes, of whatever pipelines."""

from typing import Annotated, ClassVar, Final

from pydantic import Field

from workers.settings.base import Setting, Settings, Whole

CONNECTIONS: Final = "DOCFLOW_DATABASE_CONNECTIONS"


class WorkerSettings(Settings):
    """What a process does at once, in the place of what memory and connections allow."""

    title: ClassVar[str] = "Slots"
    used_by: ClassVar[str] = "workers"

    activity_slots: Annotated[
        int | None, Whole(1, 1_000), Setting(kind="whole number", default="computed")
    ] = Field(
        None,
        validation_alias="DOCFLOW_ACTIVITY_SLOTS",
        description="activities at once of each pipeline in each process",
    )
    local_slots: Annotated[
        int | None, Whole(1, 1_000), Setting(kind="whole number", default="computed")
    ] = Field(
        None,
        validation_alias="DOCFLOW_LOCAL_SLOTS",
        description="short steps at once of each pipeline in each process",
    )
