"""`docflow dead-letter`: messages that a queue itself has given up."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from workers.shared.cli.errors import CommandError, UsageError, stop
from workers.shared.cli.messages import BodyOption, BridgeOption, corrected
from workers.shared.cli.remote import (
    Column,
    Output,
    OutputOption,
    YesOption,
    ask,
    gateway,
    show_list,
    show_one,
)
from workers.shared.text import one_line

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)
_PATH = "/api/v1/dead-letters"
PipelineArgument = Annotated[str, typer.Argument(metavar="PIPELINE", help="Name of the pipeline.")]
QueueArgument = Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")]
Numbers = Annotated[
    list[int] | None, typer.Argument(metavar="[N]...", help="Numbers in `dead-letter list`.")
]
AllOption = Annotated[bool, typer.Option("--all", help="Take every dead letter of the queue.")]


@app.command("list")
def list_dead_letters(
    context: typer.Context,
    pipeline: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show only those of this pipeline.")
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --pipeline: show only those of this queue."),
    ] = None,
    bridge: BridgeOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the dead letters of every queue, the oldest first; none is taken.

    Workers look into their queues. If the workers of a pipeline do not answer, the list says so.

    \b
    Example:
      docflow dead-letter list
    """
    with gateway(context) as connection:
        query = {"pipeline": pipeline, "queue": queue, "bridge": bridge}
        page = ask(connection, "GET", _PATH, query=query)
        columns = {
            "pipeline": "pipeline",
            "queue": "queue",
            "N": "number",
            "sent": "sent_at",
            "message id": "message_id",
            "reason": "reason",
            "description": "description",
            "deliveries": "deliveries",
        }
        nothing = "there are no dead letters"
        numbers = ["N", "deliveries"]
        show_list(page["items"], output, columns, name="number", nothing=nothing, numbers=numbers)
        for name, why in page["unanswered"].items():
            typer.echo(one_line(f"docflow: {name} did not answer: {why}"), err=True)


@app.command()
def show(
    context: typer.Context,
    pipeline: PipelineArgument,
    queue: QueueArgument,
    number: Annotated[int, typer.Argument(metavar="N", help="Number in `dead-letter list`.")],
    bridge: BridgeOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show one dead letter with its body.

    \b
    Example:
      docflow dead-letter show PIPELINE QUEUE 7
    """
    with gateway(context) as connection:
        place = (pipeline, queue, number)
        found = ask(connection, "GET", f"{_PATH}/{{}}/{{}}/{{}}", *place, query={"bridge": bridge})
        rows: Mapping[str, Column] = {
            "number": "number",
            "queue": "queue",
            "message id": "message_id",
            "sent": "sent_at",
            "deliveries": "deliveries",
            "reason": "reason",
            "description": "description",
            "cut off": lambda each: each["truncated"] and "the body is longer than what is shown",
        }
        show_one(found, output, rows, name="number", body=found["body"])


@app.command()
def redrive(
    context: typer.Context,
    pipeline: PipelineArgument,
    queue: QueueArgument,
    numbers: Numbers = None,
    every: AllOption = False,
    body: BodyOption = None,
    bridge: BridgeOption = None,
) -> None:
    """Send dead letters to their queue again; each is removed once it is there.

    A message of a task that has run is answered from that run, so that nothing is done twice. One
    that docflow had rejected is noted as sent again in `docflow message list`.

    \b
    Examples:
      docflow dead-letter redrive PIPELINE QUEUE 7
      docflow dead-letter redrive PIPELINE QUEUE --all
      docflow dead-letter redrive PIPELINE QUEUE 7 --body corrected.json
    """
    order = {**_order(numbers or (), every), "body": corrected(body), "bridge": bridge}
    with gateway(context) as connection:
        done = ask(connection, "POST", f"{_PATH}/{{}}/{{}}/redrive", pipeline, queue, body=order)
        _report("sent again", done["numbers"], numbers or (), queue)


@app.command()
def remove(
    context: typer.Context,
    pipeline: PipelineArgument,
    queue: QueueArgument,
    numbers: Numbers = None,
    every: AllOption = False,
    bridge: BridgeOption = None,
    yes: YesOption = False,
) -> None:
    """Remove dead letters for ever.

    \b
    Examples:
      docflow dead-letter remove PIPELINE QUEUE 7
      docflow dead-letter remove PIPELINE QUEUE --all --yes
    """
    order = {**_order(numbers or (), every), "bridge": bridge}
    if not yes:
        what = "all dead letters" if every else f"{len(numbers or ())} of them"
        typer.confirm(f"Remove {what} for ever?", abort=True)
    with gateway(context) as connection:
        done = ask(connection, "POST", f"{_PATH}/{{}}/{{}}/remove", pipeline, queue, body=order)
        _report("removed", done["numbers"], numbers or (), queue)


def _order(numbers: Sequence[int], every: bool) -> dict[str, object]:
    if every == bool(numbers):
        stop(UsageError("name the numbers of dead letters, or --all"))
    return {"all": True} if every else {"numbers": list(numbers)}


def _report(what: str, done: Sequence[int], wanted: Sequence[int], queue: str) -> None:
    plural = "" if len(done) == 1 else "s"
    typer.echo(f"{len(done)} dead letter{plural} of queue {queue} {what}")
    if missing := sorted(set(wanted) - set(done)):
        raise CommandError(f"not there: {', '.join(map(str, missing))}")
