"""Options about how a table is written, of every command that takes them."""

from typing import Annotated

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


def pair(option: str, text: str) -> tuple[str, str]:
    """Both sides of the last equals sign."""
    name, sign, value = (part.strip() for part in text.rpartition("="))
    if not (name and sign and value):
        stop(UsageError(f"{option} {text!r}: write NAME=VALUE"))
    return name, value
