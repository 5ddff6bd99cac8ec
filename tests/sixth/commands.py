"""`docflow parcels`: the commands of the pipeline itself."""

import typer

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Parcels.", callback=lambda: None
)


@app.command()
def weigh(parcel: str) -> None:
    """Print how long the name of a parcel is.

    \b
    Example:
      docflow parcels weigh box
    """
    typer.echo(len(parcel))
