"""`docflow batches concurrency`: how many of the function of a case's batches may run at once."""

from typing import Annotated

import typer

from contracts.batches import FEWEST_AT_ONCE, MOST_AT_ONCE, LoaderStatus
from domain.batches.concurrency import granted
from workers.cli.batches.context import CaseArgument
from workers.cli.context import CliContext, cli_context
from workers.cli.errors import UsageError, run
from workers.cli.output import JsonOption, print_json
from workers.services.batches import access

app = typer.Typer(rich_markup_mode=None)

_SETTING = "DOCFLOW_BATCH_CONCURRENCY"


@app.command()
def concurrency(
    context: typer.Context,
    case: CaseArgument,
    most: Annotated[
        int | None,
        typer.Argument(
            metavar="[N]",
            min=FEWEST_AT_ONCE,
            max=MOST_AT_ONCE,
            help="What to reserve for the function of each of its batches; none: only show it.",
        ),
    ] = None,
    default: Annotated[
        bool, typer.Option("--default", help=f"Forget its own; {_SETTING} counts again.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the concurrency of a case (`max_processing_daemons`), or set it.

    It counts for batches that are built from then on; one that is open keeps its own.

    \b
    Examples:
      docflow batches concurrency 7
      docflow batches concurrency 7 20
      docflow batches concurrency 7 --default
    """
    run(_concurrency(cli_context(context), case, most, default=default, as_json=as_json))


async def _concurrency(
    cli: CliContext, case: int, most: int | None, *, default: bool, as_json: bool
) -> None:
    if default and most is not None:
        raise UsageError("N and --default contradict each other: give one of them")
    installation, room = _installation(cli)
    changes = default or most is not None
    async with access.open_store(cli.environment) as store:
        if changes:
            await store.set_concurrency(case, most)
        own = await store.concurrency(case)
        # What is being built or loaded has read its plan already.
        loading = await store.list(case, status=LoaderStatus.PROCESSING) if changes else ()
    runs_with = installation if own is None else granted(own)
    keep = sorted(view.key.batch_id for view in loading)
    if as_json:
        print_json(
            {
                "case_id": case,
                "max_processing_daemons": own,
                "concurrency": runs_with,
                "unchanged_batches": keep,
            }
        )
        return
    if own is None:
        typer.echo(f"case {case} has none of its own: {_SETTING} counts, here {installation:,}")
    else:
        typer.echo(f"max_processing_daemons of case {case} is {own:,}")
    if own is not None and own != runs_with:
        typer.echo(
            f"its batches run with {runs_with:,}: an event source mapping takes "
            f"{FEWEST_AT_ONCE} to {MOST_AT_ONCE:,}"
        )
    if runs_with > room:
        typer.echo(
            f"all batches together may reserve {room:,} (DOCFLOW_BATCH_RESERVED_CONCURRENCY): "
            "each batch of this case waits until it is alone"
        )
    if keep:
        typer.echo(f"batch {', '.join(map(str, keep))} is open, and keeps what it was built with")


def _installation(cli: CliContext) -> tuple[int, int]:
    """What counts where a case has none of its own, and what all batches may reserve together."""
    from workers.settings.batches import BatchSettings

    if BatchSettings.given(cli.environment):
        settings = BatchSettings.read(cli.environment)
        return settings.concurrency, settings.reserved_concurrency
    fields = BatchSettings.model_fields
    return fields["concurrency"].default, fields["reserved_concurrency"].default
