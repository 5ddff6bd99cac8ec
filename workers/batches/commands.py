"""`docflow batch`: batches of cases, what they are made of, and what happens to them."""

from collections.abc import Mapping
from datetime import datetime
from types import SimpleNamespace
from typing import Annotated, Any, Final, Literal, NamedTuple

import typer

from workers.shared.cli.errors import UsageError, stop
from workers.shared.cli.output import console, table, text
from workers.shared.cli.remote import (
    Column,
    Item,
    LimitOption,
    Output,
    OutputOption,
    ReasonOption,
    ask,
    gateway,
    listed,
    show_list,
    show_one,
    when,
)
from workers.shared.cli.runs import words
from workers.shared.text import one_line
from workflows.batches.events import CancelMode
from workflows.batches.loads import DocumentState
from workflows.batches.names import FEWEST_AT_ONCE, LARGEST_ID, MOST_AT_ONCE, LoaderStatus

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)
CaseArgument = Annotated[
    int, typer.Argument(metavar="CASE", min=1, max=LARGEST_ID, help="Number of the case.")
]


class Batch(NamedTuple):
    """A batch, as a command names it."""

    case: int
    number: int

    def __str__(self) -> str:
        return f"{self.case}/{self.number}"


def _read_batch(given: str) -> Batch:
    """Return the batch of CASE/BATCH, or of the id of its run."""
    case, _, batch = given.strip().removeprefix("batch/").partition("/")
    numbers = [int(each) for each in (case, batch) if each.isdecimal()]
    if len(numbers) < 2 or not all(1 <= each <= LARGEST_ID for each in numbers):
        stop(UsageError(f"{given!r} is no batch; write CASE/BATCH, for example 7/1"))
    return Batch(*numbers)


BatchArgument = Annotated[
    Batch,
    typer.Argument(
        metavar="CASE/BATCH",
        parser=_read_batch,
        help="Number of the case and of the batch, for example 7/1; or the id of its run.",
    ),
]
_ONE: Final = "/api/v1/batches/{}/{}"
_CONCURRENCY: Final = "/api/v1/cases/{}/concurrency"
_DAY: Final = 24 * 3600


def _count(name: str) -> Column:
    def shown(batch: Item) -> object:
        return f"{batch['documents'][name]:,}"

    return shown


_COUNTS: Final = ("loaded", "duplicate", "failed", "loading")


@app.command("list")
def list_batches(
    context: typer.Context,
    case: Annotated[
        int | None, typer.Option(min=1, max=LARGEST_ID, metavar="CASE", help="Only of this one.")
    ] = None,
    status: Annotated[
        LoaderStatus | None, typer.Option("--state", help="Only those in this state.")
    ] = None,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """List batches, the newest change first.

    \b
    Examples:
      docflow batch list
      docflow batch list --case 7 -o json
    """
    with gateway(context) as connection:
        found = listed(connection, "/api/v1/batches", limit, case=case, status=status)
    columns: Mapping[str, Column] = {
        "status": "status",
        "case": "case_id",
        "batch": "batch_id",
        **{name: _count(name) for name in _COUNTS},
        "dead letters": "dead_letters",
        "since": "updated_at",
        "what to know": "reason",
    }
    numbers = ("case", "batch", *_COUNTS, "dead letters")
    nothing = "no batches; `docflow batch start CASE/BATCH` starts one"
    show_list(found, output, columns, name="id", nothing=nothing, numbers=numbers)
    if len(found) == limit and output is Output.TABLE:
        typer.echo(f"the newest {limit}; --limit shows more", err=True)


@app.command()
def show(
    context: typer.Context,
    batch: BatchArgument,
    part: Annotated[
        Literal["documents", "dead-letters", "resources"] | None,
        typer.Argument(
            metavar="PART",
            help="documents: where each stands; dead-letters: messages that could not be loaded, "
            "in the queue or recorded as failed; resources: what exists on AWS right now.",
        ),
    ] = None,
    state: Annotated[
        DocumentState | None,
        typer.Option(help="Only documents in this state; `failed` with the reasons."),
    ] = None,
    limit: LimitOption = 100,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show one batch in full, or a part of it.

    Status, documents, phase of its run, its resources, its queues over the last looks.

    \b
    Examples:
      docflow batch show 7/1
      docflow batch show 7/1 documents --state failed
      docflow batch show 7/1 dead-letters
      docflow batch show 7/1 resources
    """
    if state is not None and part != "documents":
        stop(UsageError("--state goes with documents"))
    if part == "documents":
        _documents(context, batch, state, limit, output)
    elif part == "dead-letters":
        _dead_letters(context, batch, limit, output)
    elif part == "resources":
        _resources(context, batch, output)
    else:
        _batch(context, batch, output)


def _batch(context: typer.Context, batch: Batch, output: Output) -> None:
    with gateway(context) as connection:
        found = ask(connection, "GET", _ONE, *batch)
    if output is Output.TABLE and found["problem"]:
        typer.echo(one_line(f"docflow: {found['problem']}"), err=True)
    rows: Mapping[str, Column] = {
        "batch": "id",
        "status": "status",
        "outcome": "outcome",
        "reason": "reason",
        "documents": lambda found: words(found["documents"]),
        "dead letters": lambda found: found["dead_letters"] or None,
        "LOADER_FINISHED": lambda found: "not published yet" if found["unannounced"] else None,
        "fields not used": "unused_fields",
        "changed": "updated_at",
        "waits for": lambda found: "; ".join(map(_why, found["waits_for"])) or None,
        "waits for room in the account": lambda found: _room(found["room"]),
        "waited for by": lambda found: words([f"batch {each}" for each in found["waited_for_by"]]),
        "phase": "phase",
        "passes over dead letters": lambda found: found["redrives"] or None,
        "page in Temporal": "temporal",
        "next step": lambda found: (
            f"docflow retry | skip | fail {found['id']}" if found["is_parked"] else None
        ),
    }
    show_one(found, output, rows, name="id")
    if output is Output.TABLE:
        _show_resources(found)


def _why(batch: Item) -> str:
    state = "not started" if batch["purpose"] is None else "waiting for its own turn"
    if batch["status"] == LoaderStatus.PROCESSING:
        state = "loading"
    return f"batch {batch['batch_id']} ({state}, since {when(batch['since'])})"


def _room(wait: Item | None) -> str | None:
    return None if wait is None else f"{wait['resource']} (position {wait['position']})"


def _show_resources(found: Item) -> None:
    if found["resources"]:
        resources = table("resource", "state")
        for row in found["resources"]:
            resources.add_row(text(row["resource"]), text(row["state"]))
        console().print(resources)
    if found["depths"]:
        counts = ("visible", "delayed", "in flight", "dead letters", "loads")
        made = table("looked (UTC)", *counts, numbers=counts)
        for one in found["depths"]:
            queue = one["queue"]
            numbers = (queue["visible"], queue["delayed"], queue["in_flight"])
            dead = sum(one["dead_letters"].values())
            counted = (*numbers, dead, one["loads"])
            made.add_row(text(when(one["at"])), *(text(f"{each:,}") for each in counted))
        console().print(made)


def _time(what: str, *, least: int = 0, most: int = 30 * _DAY) -> typer.models.OptionInfo:
    return typer.Option(min=least, max=most, metavar="SECONDS", help=what)


@app.command()
def start(
    context: typer.Context,
    batch: BatchArgument,
    settle: Annotated[
        int | None, _time("Between `finish` and the first look at the queues.")
    ] = None,
    poll: Annotated[int | None, _time("Between two looks.", least=1, most=_DAY)] = None,
    hold: Annotated[int | None, _time("How long the queue must stay empty.")] = None,
    max_redrives: Annotated[
        int | None, typer.Option(min=0, max=20, help="Passes over the dead letters.")
    ] = None,
    grace: Annotated[
        int | None, _time("How long a lock without infrastructure is respected.")
    ] = None,
    stuck_after: Annotated[int | None, _time("How long it may delay its case.")] = None,
    delivery: Annotated[int | None, _time("How long a filter policy may take to work.")] = None,
    end: Annotated[
        int | None, _time("How long `finish --end` may take before a person is asked.")
    ] = None,
    patience: Annotated[int | None, _time("How long a failed step waits for a person.")] = None,
    slow_after: Annotated[
        int | None, _time("How long it may load, or drain, before people are asked to look.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Start a batch, as JOB_STARTED does; options take the place of the installation's times.

    \b
    Examples:
      docflow batch start 7/1
      docflow batch start 7/2 --settle 5 --poll 30 --max-redrives 3
    """
    times = {
        "settle": settle,
        "poll": poll,
        "hold": hold,
        "max_redrives": max_redrives,
        "grace": grace,
        "stuck_after": stuck_after,
        "delivery": delivery,
        "end": end,
        "patience": patience,
        "slow_after": slow_after,
    }
    given = {name: value for name, value in times.items() if value is not None}
    _send(context, "start", batch, output, timings=given)


@app.command()
def finish(
    context: typer.Context,
    batch: BatchArgument,
    documents: Annotated[
        int | None, typer.Option(min=0, max=LARGEST_ID, help="How many there are, to be checked.")
    ] = None,
    end: Annotated[
        bool,
        typer.Option(
            "--end", help="What follows the loading is done too, as BATCH_END_FINISHED says."
        ),
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Report that all documents of a batch have been sent, as JOB_FINISHED does.

    \b
    Examples:
      docflow batch finish 7/1
      docflow batch finish 7/1 --documents 1200
      docflow batch finish 7/1 --end
    """
    if end and documents is not None:
        stop(UsageError("--documents and --end do not go together"))
    if end:
        _send(context, "end", batch, output)
    else:
        _send(context, "finish", batch, output, documents=documents)


@app.command()
def cancel(
    context: typer.Context,
    batch: BatchArgument,
    partial: Annotated[
        bool, typer.Option("--partial", help="Load what was sent, take nothing more in.")
    ] = False,
    reason: ReasonOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Cancel a batch, as IMPORT_CANCELLED does; what was built for it is removed.

    \b
    Examples:
      docflow batch cancel 7/1
      docflow batch cancel 7/1 --partial --reason "the case was closed"
    """
    mode = CancelMode.PARTIAL if partial else CancelMode.FULL
    _send(context, "cancel", batch, output, mode=mode, reason=reason)


@app.command()
def redrive(
    context: typer.Context,
    batch: BatchArgument,
    with_failed: Annotated[
        bool,
        typer.Option("--with-failed", help="Try the messages too that were recorded as failed."),
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Try the dead letters of a batch once more, also after its end.

    With --with-failed a batch that has ended is built once more, and announced again when that is
    done.

    \b
    Examples:
      docflow batch redrive 7/1
      docflow batch redrive 7/1 --with-failed
    """
    done = _send(context, "redrive", batch, output, with_failed=with_failed)
    if lost := done["without_message"]:
        typer.echo(
            f"docflow: {lost:,} failed documents have no message to try again; have them sent once "
            f"more (`docflow batch show {batch} documents --state failed`)",
            err=True,
        )


def _send(context: typer.Context, verb: str, batch: Batch, output: Output, **body: Any) -> Item:
    """Deliver an event to a case; what was accepted."""
    with gateway(context) as connection:
        done = ask(connection, "POST", f"{_ONE}/{verb}", *batch, body=body)
    if output is Output.TABLE:
        shown = f"see `docflow batch show {batch}`"
        typer.echo(f"{done['event']} of batch {batch} accepted; {shown}")
    else:
        show_one(done, output, {}, name="id")
    return done


@app.command()
def expect(
    context: typer.Context,
    case: CaseArgument,
    batches: Annotated[
        list[int],
        typer.Argument(metavar="BATCH...", help="Their numbers: the order they run in."),
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """Declare which batches of a case will come: none overtakes one with a lower number.

    \b
    Example:
      docflow batch expect 7 1 2 3
    """
    path = "/api/v1/cases/{}/expected-batches"
    with gateway(context) as connection:
        done = ask(connection, "PUT", path, case, body={"batches": batches})
    if output is Output.TABLE:
        typer.echo(f"case {case} expects batch {', '.join(map(str, done['batches']))}")
    else:
        show_one(done, output, {}, name=lambda done: "\n".join(map(str, done["batches"])))


def _documents(
    context: typer.Context,
    batch: Batch,
    state: DocumentState | None,
    limit: int,
    output: Output,
) -> None:
    path = f"{_ONE.format(*batch)}/documents"
    with gateway(context) as connection:
        found = listed(connection, path, limit, state=state)
    columns: Mapping[str, Column] = {
        "document": "document_id",
        "state": "state",
        "file": "filename",
        "changed": "updated_at",
        "what to know": _remark,
    }
    nothing = f"no {state.value + ' ' if state else ''}documents of batch {batch}"
    show_list(found, output, columns, name="document_id", nothing=nothing)
    if len(found) == limit and output is Output.TABLE:
        typer.echo(f"the first {limit}; --limit shows more", err=True)


def _dead_letters(context: typer.Context, batch: Batch, limit: int, output: Output) -> None:
    with gateway(context) as connection:
        path = f"{_ONE}/failed-messages"
        query = {"limit": min(limit, _DEAD_LETTERS)}
        found = ask(connection, "GET", path, *batch, query=query)["items"]
    columns: Mapping[str, Column] = {
        "where": "where",
        "document": "document_id",
        "message": lambda one: one["event_type"] or one["body"][:_BEGINNING],
        "since": "at",
        "reason": "reason",
    }
    nothing = f"every message of batch {batch} is loaded, or being loaded"
    show_list(found, output, columns, name="document_id", nothing=nothing)
    if found and output is Output.TABLE:
        typer.echo(f"`docflow batch redrive {batch} --with-failed` tries them again")


_BEGINNING: Final = 80
_DEAD_LETTERS: Final = 200
"""What a look into the queue shows at most."""


def _resources(context: typer.Context, batch: Batch, output: Output) -> None:
    with gateway(context) as connection:
        there = ask(connection, "GET", f"{_ONE}/resources", *batch)
    if output is not Output.TABLE:
        names = "\n".join(each["name"] for each in there["resources"])
        show_one(there, output, {}, name=lambda there: names)
        return
    columns: Mapping[str, Column] = {
        "resource": "resource",
        "name": "name",
        "made (UTC)": lambda one: when(one["made_at"]),
        "age": lambda one: _age(one["made_at"], there["at"]),
        "costs by": lambda one: words(one["details"]),
        "made by": "owner",
    }
    if there["resources"]:
        show_list(there["resources"], output, columns, name="name", nothing="")
    typer.echo(one_line(there["sentence"]))


def _age(made: str | None, now: str) -> str | None:
    if made is None:
        return None
    passed = datetime.fromisoformat(now) - datetime.fromisoformat(made)
    minutes = max(int(passed.total_seconds()), 0) // 60
    return f"{minutes // 60:,} h {minutes % 60:02} min"


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
        bool,
        typer.Option(
            "--default", help="Forget its own; DOCFLOW_BATCH_CONCURRENCY of the workers counts."
        ),
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the concurrency of a case (`max_processing_daemons`), or set it.

    It counts for batches that are built from then on; one that is open keeps its own.

    \b
    Examples:
      docflow batch concurrency 7
      docflow batch concurrency 7 20
      docflow batch concurrency 7 --default
    """
    if default and most is not None:
        stop(UsageError("N and --default contradict each other: give one of them"))
    with gateway(context) as connection:
        if default or most is not None:
            found = ask(connection, "PUT", _CONCURRENCY, case, body={"most": most})
        else:
            found = ask(connection, "GET", _CONCURRENCY, case)
    if output is not Output.TABLE:
        show_one(found, output, {}, name="most")
    elif found["most"] is None:
        typer.echo(f"case {case} has none of its own: DOCFLOW_BATCH_CONCURRENCY counts")
    else:
        typer.echo(f"max_processing_daemons of case {case} is {found['most']:,}")


def _remark(document: Item) -> object:
    from workers.batches.labels import remark

    return remark(SimpleNamespace(**document))
