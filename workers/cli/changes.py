"""Fields of a message as they are given on the command line."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from workers.cli.errors import UsageError, stop

MapOption = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="HEADER=FIELD",
        help="What a column of the document means; - as FIELD: nothing. May be repeated.",
    ),
]
ScheduleOption = Annotated[
    str | None,
    typer.Option(
        "--schedule",
        metavar="ID",
        help="The schedule that the file updates, or the id of a new one.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="FIELD=VALUE", help="Another field of the message. May be repeated."
    ),
]


def changes_of(
    sheet: str | None, columns: Sequence[str], schedule: str | None, values: Sequence[str]
) -> Mapping[str, Any]:
    """Fields of the message to their values."""
    named = {"sheet": sheet, "schedule_id": schedule}
    changes: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if columns:
        changes["map"] = dict(_pair("--map", each) for each in columns)
    return {**changes, **dict(_pair("--set", each) for each in values)}


def _pair(option: str, text: str) -> tuple[str, str]:
    """Both sides of the last equals sign."""
    name, sign, value = (part.strip() for part in text.rpartition("="))
    if not (name and sign and value):
        stop(UsageError(f"{option} {text!r}: write NAME=VALUE"))
    return name, value
