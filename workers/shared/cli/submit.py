"""`docflow submit`: the commands that registers contribute, each in the name of its pipeline."""

import typer

from workers import catalogue
from workers.shared.register import load


def submit_commands() -> typer.Typer:
    """The group, over the pipelines of the catalogue."""
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,
        help="Send something into a pipeline and follow it.",
    )
    for pipeline in catalogue.PIPELINES:
        if pipeline.submit is not None:
            app.add_typer(load(pipeline.submit))

    @app.callback()
    def group() -> None:  # pyright: ignore[reportUnusedFunction]
        # With a callback it stays a group, also where one pipeline alone has a command in it.
        pass

    return app
