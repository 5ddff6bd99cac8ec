"""`docflow message`: messages that a bridge has rejected, and those that a queue has given up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from workers.shared.cli.errors import CommandError, UsageError, stop
from workers.shared.cli.output import read_body
from workers.shared.cli.remote import (
    Column,
    Item,
    LimitOption,
    Output,
    OutputOption,
    ReasonOption,
    YesOption,
    ask,
    gateway,
    listed,
    show_list,
    show_one,
)
from workers.shared.text import one_line

if TYPE_CHECKING:
    from docflow.client.synchronous import Connection

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)
_PATH: Final = "/api/v1/rejected-messages"
_DEAD: Final = "/api/v1/dead-letters"
IdArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Number of a rejected message, or PIPELINE/QUEUE/N of a dead letter, as in the list.",
    ),
]
IdsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="ID...",
        help="Numbers of rejected messages, or PIPELINE/QUEUE/N of dead letters; PIPELINE/QUEUE "
        "with --all.",
    ),
]
AllOption = Annotated[bool, typer.Option("--all", help="Take every dead letter of PIPELINE/QUEUE.")]
BodyOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", exists=True, dir_okay=False, help="Send this corrected message instead."
    ),
]
BridgeOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Name what receives, if two queues share a name."),
]


def corrected(file: Path | None) -> str | None:
    """The text of a corrected message; a file that holds none ends the command."""
    if file is None:
        return None
    try:
        return read_body(file).decode()
    except UnicodeDecodeError as error:
        stop(UsageError(f"{file} is not UTF-8: {error.reason} at byte {error.start}"))
    except UsageError as error:
        stop(error)


@dataclass(frozen=True)
class _Letters:
    """Dead letters of one queue; None: all of it."""

    pipeline: str
    queue: str
    numbers: Sequence[int] | None

    @property
    def order(self) -> dict[str, object]:
        return {"all": True} if self.numbers is None else {"numbers": self.numbers}


def _id_of(letter: Item) -> str:
    return f"{letter['pipeline']}/{letter['queue']}/{letter['number']}"


def _letter(id: str) -> tuple[str, str, int]:
    pipeline, _, rest = id.partition("/")
    queue, _, number = rest.rpartition("/")
    if not (pipeline and queue and number.isdecimal()):
        stop(
            UsageError(
                f"{id!r} is neither the number of a rejected message nor PIPELINE/QUEUE/N of a "
                "dead letter; `docflow message list` has them"
            )
        )
    return pipeline, queue, int(number)


def _chosen(ids: Sequence[str], *, every: bool) -> tuple[Sequence[int], Sequence[_Letters]]:
    """The rejected messages that are named, or the dead letters by queue."""
    if every:
        [id, *more] = ids
        pipeline, _, queue = id.partition("/")
        if more or not queue:
            stop(UsageError("--all takes one PIPELINE/QUEUE"))
        return [], [_Letters(pipeline, queue, None)]
    rejected = [int(id) for id in ids if id.isdecimal()]
    if len(rejected) == len(ids):
        return rejected, []
    if rejected:
        stop(UsageError("name rejected messages or dead letters, not both"))
    found: dict[tuple[str, str], list[int]] = {}
    for pipeline, queue, number in map(_letter, ids):
        found.setdefault((pipeline, queue), []).append(number)
    return [], [_Letters(*place, numbers) for place, numbers in found.items()]


@app.command("list")
def list_messages(
    context: typer.Context,
    dead: Annotated[
        bool,
        typer.Option(
            "--dead-letters",
            help="List what queues have given up instead, the oldest first; none is taken.",
        ),
    ] = False,
    queue: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show only those of this queue.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option(metavar="WORD", help="Show only those rejected for this reason.")
    ] = None,
    open_only: Annotated[
        bool, typer.Option("--open", help="Show only those neither sent again nor dismissed.")
    ] = False,
    pipeline: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show only dead letters of this pipeline.")
    ] = None,
    bridge: BridgeOption = None,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """List messages that docflow has rejected, the newest first; or dead letters.

    For dead letters, workers look into their queues. If the workers of a pipeline do not answer,
    the list says so.

    \b
    Examples:
      docflow message list --open
      docflow message list --queue documents -o json
      docflow message list --dead-letters
    """
    if dead:
        if reason is not None or open_only:
            stop(UsageError("--reason and --open are of rejected messages"))
        _list_dead(context, {"pipeline": pipeline, "queue": queue, "bridge": bridge}, output)
        return
    if pipeline is not None or bridge is not None:
        stop(UsageError("--pipeline and --bridge go with --dead-letters"))
    with gateway(context) as connection:
        found = listed(connection, _PATH, limit, queue=queue, reason=reason, open=open_only or None)
        columns = {
            "ID": "id",
            "queue": "queue",
            "received": "received_at",
            "message id": "message_id",
            "reason": "reason",
            "description": "description",
            "sent again": "resubmitted_at",
            "dismissed": "dismissed_at",
        }
        nothing = "no message was rejected"
        show_list(found, output, columns, name="id", nothing=nothing, numbers=["ID"])


def _list_dead(context: typer.Context, query: Mapping[str, str | None], output: Output) -> None:
    with gateway(context) as connection:
        page = ask(connection, "GET", _DEAD, query=query)
    columns: Mapping[str, Column] = {
        "ID": _id_of,
        "sent": "sent_at",
        "message id": "message_id",
        "reason": "reason",
        "description": "description",
        "deliveries": "deliveries",
    }
    nothing, numbers = "there are no dead letters", ["deliveries"]
    show_list(page["items"], output, columns, name=_id_of, nothing=nothing, numbers=numbers)
    for name, why in page["unanswered"].items():
        typer.echo(one_line(f"docflow: {name} did not answer: {why}"), err=True)


@app.command()
def show(
    context: typer.Context,
    id: IdArgument,
    bridge: BridgeOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show one rejected message, or one dead letter, with its body.

    \b
    Examples:
      docflow message show 7
      docflow message show PIPELINE/QUEUE/7
    """
    with gateway(context) as connection:
        if id.isdecimal():
            found, rows = ask(connection, "GET", f"{_PATH}/{{}}", id), _REJECTED
        else:
            path, query = f"{_DEAD}/{{}}/{{}}/{{}}", {"bridge": bridge}
            found, rows = ask(connection, "GET", path, *_letter(id), query=query), _DEAD_LETTER
    show_one(found, output, rows, name=lambda _: id, body=found["body"])


_REJECTED: Final[Mapping[str, Column]] = {
    "number": "id",
    "queue": "queue",
    "message id": "message_id",
    "received": "received_at",
    "sent again": "resubmitted_at",
    "dismissed": "dismissed_at",
    "by": "by",
    "note": "note",
    "reason": "reason",
    "description": "description",
    "cut off": lambda each: each["truncated"] and "the body is longer than what is kept",
}
_DEAD_LETTER: Final[Mapping[str, Column]] = {
    "number": "number",
    "queue": "queue",
    "message id": "message_id",
    "sent": "sent_at",
    "deliveries": "deliveries",
    "reason": "reason",
    "description": "description",
    "cut off": lambda each: each["truncated"] and "the body is longer than what is shown",
}


@app.command()
def retry(
    context: typer.Context,
    ids: IdsArgument,
    every: AllOption = False,
    body: BodyOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Send it although it is not valid, or was sent before.")
    ] = False,
    bridge: BridgeOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Send messages to their queue again, as they were or corrected.

    A worker of its pipeline sends a rejected message; the original stays in the dead letter queue
    until the owner of the queue removes it. A dead letter is removed once it is in its queue again.
    If its task has run, it is answered from that run, so that nothing is done twice. One that
    docflow had rejected is noted as sent again.

    \b
    Examples:
      docflow message retry 7
      docflow message retry 7 --body corrected.json
      docflow message retry PIPELINE/QUEUE/7 PIPELINE/QUEUE/8
      docflow message retry PIPELINE/QUEUE --all
    """
    (rejected, letters), text = _chosen(ids, every=every), corrected(body)
    if text is not None and len(ids) > 1:
        stop(UsageError("--body takes one ID"))
    if letters and force:
        stop(UsageError("--force is of rejected messages"))
    with gateway(context) as connection:
        for each in letters:
            order = {**each.order, "body": text, "bridge": bridge}
            _answer(connection, each, "redrive", order, "sent again", output)
        for each in rejected:
            given = {"body": text, "force": force, "bridge": bridge}
            done = ask(connection, "POST", f"{_PATH}/{{}}/retry", each, body=given)
            for remark in done["remarks"]:
                typer.echo(one_line(f"docflow: {remark}"), err=True)
            message = done["message"]
            if output is not Output.TABLE:
                show_one(message, output, {}, name="id")
            else:
                typer.echo(one_line(f"sent message {each} to queue {message['queue']} again"))


@app.command()
def dismiss(
    context: typer.Context,
    ids: IdsArgument,
    every: AllOption = False,
    reason: ReasonOption = None,
    bridge: BridgeOption = None,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Dismiss messages that need no more work.

    A rejected message stays in the record. A dead letter is removed for ever.

    \b
    Examples:
      docflow message dismiss 7 --reason "the sender sent it again"
      docflow message dismiss PIPELINE/QUEUE/7
      docflow message dismiss PIPELINE/QUEUE --all --yes
    """
    rejected, letters = _chosen(ids, every=every)
    if letters and reason is not None:
        stop(UsageError("--reason is of rejected messages"))
    if letters and not yes:
        what = "all dead letters" if every else f"{len(ids)} of them"
        typer.confirm(f"Remove {what} for ever?", abort=True)
    with gateway(context) as connection:
        for each in letters:
            _answer(connection, each, "remove", {**each.order, "bridge": bridge}, "removed", output)
        for number in rejected:
            path = f"{_PATH}/{{}}/dismiss"
            done = ask(connection, "POST", path, number, body={"reason": reason})
            if output is Output.TABLE:
                typer.echo(f"dismissed message {number}")
            else:
                show_one(done, output, {}, name="id")


def _answer(
    connection: "Connection",
    letters: _Letters,
    verb: str,
    order: Mapping[str, object],
    what: str,
    output: Output,
) -> None:
    path, place = f"{_DEAD}/{{}}/{{}}/{verb}", (letters.pipeline, letters.queue)
    answer = ask(connection, "POST", path, *place, body=order)
    done: Sequence[int] = answer["numbers"]
    if output is Output.TABLE:
        plural = "" if len(done) == 1 else "s"
        typer.echo(f"{len(done)} dead letter{plural} of queue {letters.queue} {what}")
    else:
        ids = "\n".join(f"{'/'.join(place)}/{number}" for number in done)
        show_one(answer, output, {}, name=lambda _: ids)
    if missing := sorted(set(letters.numbers or ()) - set(done)):
        raise CommandError(f"not there: {', '.join(map(str, missing))}")
