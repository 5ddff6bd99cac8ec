"""What a bulk operation on the activities of a project may select by, and what it sets."""

from typing import Final, Literal, get_args

from pydantic import Field

from contracts.base import Contract

FilterValue = str | int | float | bool | None
Column = Literal[
    "name",
    "status",
    "area",
    "discipline",
    "responsible",
    "notes",
    "type",
    "wbs_code",
    "calendar",
    "constraint_type",
    "level_1",
    "level_2",
    "level_3",
    "level_4",
    "level_5",
    "level_6",
    "level_7",
    "level_8",
    "level_9",
    "level_10",
]

LEVELS: Final = 10
"""Levels that an activity can be grouped by."""
COLUMNS: Final[tuple[str, ...]] = get_args(Column)
"""Activity columns that `schedule_fill_column` may set."""
FILTERS: Final = (
    "schedule_id",
    "primavera_project_id",
    "task_code",
    *COLUMNS,
)
"""Activity columns that a bulk operation may select by."""


class LevelPayload(Contract):
    """Which level a bulk operation is about."""

    level: int = Field(ge=1, le=LEVELS)


class FillLevelPayload(LevelPayload):
    """The level and what to write into it."""

    value: str = Field(min_length=1, max_length=255)


class FillColumnPayload(Contract):
    """The column and what to write into it; null clears it."""

    column: Column
    value: str | None = Field(max_length=4000)
