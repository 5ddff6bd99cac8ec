"""`docflow person`: people whom rows are about."""

from typing import Annotated, Final

import typer

from workers.shared.cli.remote import (
    Column,
    Output,
    OutputOption,
    ReasonOption,
    YesOption,
    ask,
    gateway,
    show_list,
    show_one,
)

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
_PATH: Final = "/api/v1/people"
OrganisationOption = Annotated[
    int, typer.Option(min=1, metavar="ID", help="Whose person it is.", show_default=False)
]
_ERASED: Final[dict[str, Column]] = {
    "rows": lambda found: ", ".join(f"{name} {n:,}" for name, n in found["rows"].items()),
    "uploads": lambda found: ", ".join(found["uploads"]),
    "not ended": lambda found: ", ".join(found["open"]),
    "not searched": lambda found: ", ".join(found["not_searched"]),
}


@app.command()
def find(
    context: typer.Context,
    words: Annotated[
        str, typer.Argument(metavar="TEXT", help="Parts of the name or the mail address.")
    ],
    organisation: OrganisationOption,
    output: OutputOption = Output.TABLE,
) -> None:
    """Look for people by a part of their name or mail address.

    \b
    Example:
      docflow person find "anna meier" --organisation 1
    """
    wanted = {"organisation_id": organisation, "text": words}
    with gateway(context) as connection:
        found = ask(connection, "POST", f"{_PATH}/find", body=wanted)["items"]
        columns: dict[str, Column] = {"id": "id", "name": "name"}
        show_list(found, output, columns, name="id", nothing="nobody is called like that")


@app.command()
def erase(
    context: typer.Context,
    id: Annotated[int, typer.Argument(metavar="ID", min=1, help="Number in `person find`.")],
    organisation: OrganisationOption,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be erased.")
    ] = False,
    reason: ReasonOption = None,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Erase a person: their rows, and what is kept of the uploads that hold them.

    \b
    Examples:
      docflow person erase 7 --organisation 1 --dry-run
      docflow person erase 7 --organisation 1 --reason "asked for it by mail"
    """
    if not (yes or dry_run):
        typer.confirm(f"Erase person {id} for ever?", abort=True)
    given = {"organisation_id": organisation, "dry_run": dry_run, "reason": reason}
    with gateway(context) as connection:
        found = ask(connection, "POST", f"{_PATH}/{{}}/erase", id, body=given)
        show_one(found, output, _ERASED, name=lambda _: id)
