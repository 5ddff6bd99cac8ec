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
DateOrderOption = Annotated[
    str | None,
    typer.Option(metavar="dmy|mdy", help="How 03/04/2025 is read; found out if absent."),
]
DecimalOption = Annotated[
    str | None,
    typer.Option(metavar=".|,", help="Decimal mark of 1,234; found out if absent."),
]
LeadingZerosOption = Annotated[
    str | None,
    typer.Option(
        metavar="same|distinct", help="Whether 123 and the known 00123 are the same code."
    ),
]
LeftOutOption = Annotated[
    str | None,
    typer.Option(
        metavar="note|ask|keep",
        help="What happens to totals, page footers, repeated headers and headings [note].",
    ),
]
KeepLinesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--keep-line",
        metavar="LINE",
        help="Keep this line although it would be left out: 7, or Sheet!7. May be repeated.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="FIELD=VALUE", help="Another field of the message. May be repeated."
    ),
]


def changes_of(
    fields: Mapping[str, str | None], columns: Sequence[str], values: Sequence[str]
) -> Mapping[str, Any]:
    """Fields of the message to their values.

    Args:
        fields: Those with options of their own; None: it is not given.
        columns: What `MapOption` takes.
        values: What `SetOption` takes.
    """
    changes: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    if columns:
        changes["map"] = map_of(columns)
    return {**changes, **dict(_pair("--set", each) for each in values)}


def map_of(columns: Sequence[str]) -> Mapping[str, str]:
    """Headers to fields, as `MapOption` takes them."""
    return dict(_pair("--map", each) for each in columns)


def _pair(option: str, text: str) -> tuple[str, str]:
    """Both sides of the last equals sign."""
    name, sign, value = (part.strip() for part in text.rpartition("="))
    if not (name and sign and value):
        stop(UsageError(f"{option} {text!r}: write NAME=VALUE"))
    return name, value
