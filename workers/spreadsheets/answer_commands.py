"""A person's answers to an import: columns, values, the import as a whole.

The service of spreadsheets, for the person at the terminal.

Commands do what the pages do, through the same code. Who has the settings of database and Temporal
may answer for every organisation.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final, TypeVar

import typer
from pydantic import ValidationError

from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import CommandError, ExitCode, UsageError, failures_in_one_line, run
from workers.shared.cli.output import JsonOption, console, print_json, table, text
from workers.shared.text import one_line
from workers.spreadsheets.register import SPREADSHEETS
from workflows.shared.contracts import problem_text
from workflows.spreadsheets.mappings import (
    CellDecision,
    ColumnDecision,
    MappingsAnswer,
    MappingStatus,
    SpreadsheetState,
)
from workflows.spreadsheets.runs import RowCounts, workflow_id

if TYPE_CHECKING:
    from rich.text import Text

    from activities.spreadsheets.records import CellsView, ColumnsView
    from workers.shared.services.identity import Identity
    from workers.spreadsheets.access import Access
    from workers.spreadsheets.statuses import SpreadsheetStatuses
    from workflows.spreadsheets.mappings import Alternative


UuidArgument = Annotated[
    str, typer.Argument(metavar="UUID", help="As `spreadsheets list` shows it.")
]

OPTIONS: Mapping[str, str] = {
    "importType": "--type",
    "organisationId": "--organisation",
    "contextId": "--context",
    "headerLine": "--header-line",
    "noHeader": "--no-header",
    "autoStart": "--auto-start",
    "dryRun": "--dry-run",
    "targetEntityId": "--set",
}
"""Field of the API to the option that sets it."""

_SAME_NAMES = re.compile(r"(^|; )(notify|reason|to):")
"""Fields whose names are words of sentences too, where a problem with them begins."""

_NAMES = re.compile(rf"\b({'|'.join(OPTIONS)})\b")


def parse_uuid(text: str) -> str:
    """The uuid of an import, also from its workflow id.

    Raises:
        UsageError: It is not one.
    """
    text = text.strip().lower()
    known = SPREADSHEETS.recognise(text) or SPREADSHEETS.recognise(workflow_id(text))
    if known is None or known.kind.scheduled:
        raise UsageError(
            f"{text!r} is not the UUID of an import; `docflow spreadsheets list` shows them"
        )
    return known.key


@asynccontextmanager
async def open_access(
    cli: CliContext, *, organisation: int | None = None, email: str | None = None
) -> AsyncGenerator["Access"]:
    """Connect to database and Temporal.

    Args:
        cli: Settings and user.
        organisation: For whom; None: for all that have imports.
        email: Mail address of the user.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
        CommandError: The service refused an operation inside the block.
    """
    from workers.spreadsheets import access
    from workers.spreadsheets.settings import SpreadsheetSettings

    settings = SpreadsheetSettings.read(cli.environment)
    with _refusals_in_options():
        async with access.open_access(
            cli.environment, cli.user, settings, organisation=organisation, email=email
        ) as opened:
            yield opened


@asynccontextmanager
async def open_statuses(
    cli: CliContext, *, organisation: int | None = None
) -> AsyncGenerator[tuple["SpreadsheetStatuses", "Identity"]]:
    """The status rows alone, and who asks for them.

    Raises:
        SettingsError: `DATABASE_URL` is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        CommandError: An operation inside the block was refused.
    """
    from workers.spreadsheets import access

    with _refusals_in_options():
        async with access.open_statuses(
            cli.environment, cli.user, organisation=organisation
        ) as opened:
            yield opened


@contextmanager
def _refusals_in_options() -> Generator[None]:
    from workers.shared.services.errors import Refused, ServiceError

    try:
        yield
    except ServiceError as refusal:
        misuse = isinstance(refusal, Refused)
        exit_code = ExitCode.USAGE if misuse else ExitCode.FAILED
        raise CommandError(_in_options(str(refusal)), exit_code) from refusal


def _in_options(refusal: str) -> str:
    """A refusal that names options, where the API's names fields."""
    named = _NAMES.sub(lambda found: OPTIONS[found[0]], refusal)
    return _SAME_NAMES.sub(r"\1--\2:", named)


BLOCK_BYTES: Final = 1 << 20


class LocalUpload:
    """An upload that is not a request: its file lies here, its fields are options of a command."""

    def __init__(self, filename: str, content: BinaryIO, fields: Mapping[str, str]) -> None:
        """Prepare to read a file.

        Args:
            filename: Its name, without folders.
            content: Its bytes.
            fields: As a form has them.
        """
        self.filename = filename[-255:]
        self.fields = dict(fields)
        self._content = content

    async def open(self) -> None:
        """Nothing comes before the file."""

    async def file(self) -> AsyncGenerator[bytes]:
        """The bytes of the file; one that is not a spreadsheet is refused as every upload is."""
        from workers.spreadsheets.upload_form import check_beginning

        block = await self._read()
        check_beginning(block, self.filename)
        while block:
            yield block
            block = await self._read()

    async def finish(self) -> Mapping[str, str]:
        """Nothing comes behind the file."""
        return self.fields

    async def _read(self) -> bytes:
        return await asyncio.to_thread(self._content.read, BLOCK_BYTES)


_STATES: Mapping[SpreadsheetState, str] = {
    SpreadsheetState.UPLOADED: "cyan",
    SpreadsheetState.COLUMN_MAPPING: "bold yellow",
    SpreadsheetState.CELL_MAPPING: "bold yellow",
    SpreadsheetState.PROCESSING: "cyan",
    SpreadsheetState.COMPLETED: "green",
    SpreadsheetState.FAILED: "bold red",
    SpreadsheetState.TERMINATED: "bold red",
    SpreadsheetState.CANCELLED: "magenta",
}
_MATCHES: Mapping[MappingStatus, str] = {
    MappingStatus.AUTO_MATCHED: "green",
    MappingStatus.MANUAL_MATCHED: "green",
    MappingStatus.UNMATCHED: "bold yellow",
    MappingStatus.IGNORED: "dim",
}


def spreadsheet_state(state: SpreadsheetState) -> "Text":
    """A state in its colour."""
    return text(state, _STATES[state])


def match_words(status: MappingStatus) -> "Text":
    """How far something is understood, in its colour."""
    return text(status, _MATCHES[status])


def row_counts(counts: RowCounts) -> str:
    """Outcome of the rows."""
    return ", ".join(f"{number:,} {name}" for name, number in counts.model_dump().items())


def to_json(value: object) -> Any:
    """A result of the service, for programs; times are ISO 8601."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, by_alias=False)


ReasonOption = Annotated[str | None, typer.Option(help="The reason, kept with the decisions.")]
Action = Callable[["Access", str], Awaitable[MappingsAnswer]]

app = typer.Typer(rich_markup_mode=None)


@app.command("confirm-columns")
def confirm_columns(
    context: typer.Context, uuid: UuidArgument, as_json: JsonOption = False
) -> None:
    """Confirm what columns mean; the values are collected next.

    \b
    Example:
      docflow spreadsheets confirm-columns 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1
    """

    _answer(
        context, uuid, lambda own, id: own.service.confirm_columns(own.who, id), as_json=as_json
    )


@app.command("confirm-values")
def confirm_values(context: typer.Context, uuid: UuidArgument, as_json: JsonOption = False) -> None:
    """Confirm what values mean; the rows are processed next.

    \b
    Example:
      docflow spreadsheets confirm-values 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1
    """

    _answer(context, uuid, lambda own, id: own.service.confirm_cells(own.who, id), as_json=as_json)


@app.command("start")
def start(context: typer.Context, uuid: UuidArgument, as_json: JsonOption = False) -> None:
    """Confirm all that matched by itself, and process the rows.

    \b
    Example:
      docflow spreadsheets start 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1
    """

    _answer(context, uuid, lambda own, id: own.service.start(own.who, id), as_json=as_json)


@app.command()
def cancel(
    context: typer.Context,
    uuid: UuidArgument,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """End an import; rows that are in stay in, and can be undone.

    \b
    Example:
      docflow spreadsheets cancel 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 --reason "wrong file"
    """

    _answer(context, uuid, lambda own, id: own.service.cancel(own.who, id, reason), as_json=as_json)


@app.command()
def retry(
    context: typer.Context,
    uuid: UuidArgument,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try the step again that an import is parked at.

    \b
    Example:
      docflow spreadsheets retry 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1
    """

    _answer(context, uuid, lambda own, id: own.service.retry(own.who, id, reason), as_json=as_json)


@app.command()
def reassign(
    context: typer.Context,
    uuid: UuidArgument,
    to: Annotated[str, typer.Option(help="Who has to answer from now on.")],
    notify: Annotated[str | None, typer.Option(metavar="MAIL", help="Their address.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Assign an import to another person.

    \b
    Example:
      docflow spreadsheets reassign 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 --to grace
    """

    _answer(
        context,
        uuid,
        lambda own, id: own.service.reassign(own.who, id, to, notify),
        as_json=as_json,
    )


def _answer(context: typer.Context, text: str, action: Action, *, as_json: bool) -> None:
    async def answered() -> None:
        uuid = parse_uuid(text)
        async with open_access(cli_context(context)) as access:
            answer = await action(access, uuid)
        show_answer(uuid, answer, as_json=as_json)

    run(answered())


@dataclass(frozen=True)
class LostField:
    """A column whose field was given to another one."""

    id: int
    header: str
    field: str


def show_answer(
    uuid: str, answer: MappingsAnswer, *, as_json: bool, lost: Sequence[LostField] | None = None
) -> None:
    """Show what an answer changed; `lost` is of answers about columns."""
    if as_json:
        fields = {} if lost is None else {"lost_fields": [asdict(each) for each in lost]}
        print_json({"uuid": uuid, **answer.model_dump(mode="json"), **fields})
        return
    typer.echo(f"accepted; {uuid} is {answer.state}")
    for each in lost or ():
        typer.echo(one_line(f"column {each.id} {each.header!r} is no longer {each.field}"))
    if answer.missing_fields:
        typer.echo(f"no column yet for {', '.join(answer.missing_fields)}")
    if answer.cells.open:
        typer.echo(
            f"{answer.cells.open:,} values without a meaning: `docflow spreadsheets values {uuid}`"
        )


@app.command()
def undo(
    context: typer.Context,
    uuid: UuidArgument,
    preview: Annotated[
        bool, typer.Option("--preview", help="Say what would be taken back, and change nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Take the rows of an import back; records that were changed since are left alone.

    \b
    Examples:
      docflow spreadsheets undo 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 --preview
      docflow spreadsheets undo 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1
    """
    action = _preview_undo if preview else _undo
    run(action(cli_context(context), parse_uuid(uuid), as_json=as_json))


async def _preview_undo(cli: CliContext, uuid: str, *, as_json: bool) -> None:
    async with open_access(cli) as access:
        found = await access.service.preview_undo(access.who, uuid)
    if as_json:
        print_json({"uuid": uuid, **to_json(found)})
        return
    typer.echo(
        f"{found.deleted:,} records would be deleted, {found.restored:,} would get their values "
        f"back, {found.left_alone:,} rows would be left alone; nothing was changed"
    )
    for each in found.conflicts:
        typer.echo(one_line(f"row {each.line}: {each.record.lower()} {each.reason}"))
    if len(found.conflicts) < found.left_alone:
        typer.echo(f"the first {len(found.conflicts):,} of {found.left_alone:,}", err=True)


async def _undo(cli: CliContext, uuid: str, *, as_json: bool) -> None:
    async with open_access(cli) as access:
        await access.service.undo(access.who, uuid)
    if as_json:
        print_json({"uuid": uuid, "undo": "RUNNING"})
        return
    typer.echo(f"undoing {uuid}; see `docflow spreadsheets show {uuid}`")


SAMPLES_SHOWN = 3
Decision = TypeVar("Decision", ColumnDecision, CellDecision)

ConfirmOption = Annotated[
    list[int] | None, typer.Option(metavar="ID", help="The match is right; may be repeated.")
]

_NOUNS: Mapping[type[ColumnDecision | CellDecision], str] = {
    ColumnDecision: "column",
    CellDecision: "value",
}


@app.command()
def columns(
    context: typer.Context,
    uuid: UuidArgument,
    targets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="ID=FIELD", help="What a column means; may be repeated."),
    ] = None,
    confirm: ConfirmOption = None,
    ignore: Annotated[
        list[int] | None, typer.Option(metavar="ID", help="Leave it out; may be repeated.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what columns mean, or decide it.

    \b
    Examples:
      docflow spreadsheets columns 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1
      docflow spreadsheets columns 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 \\
          --set 8=EVENT_CATEGORY_NAME --ignore 9
    """
    with failures_in_one_line():
        decisions = _decisions(
            ColumnDecision,
            {"target": _pairs(targets or [], "FIELD", str)},
            {"confirm": confirm or [], "ignore": ignore or []},
        )
    run(_columns(cli_context(context), uuid, decisions, as_json=as_json))


async def _columns(
    cli: CliContext, text: str, decisions: Sequence[ColumnDecision], *, as_json: bool
) -> None:
    uuid = parse_uuid(text)
    async with open_access(cli) as access:
        view = await access.service.columns(access.who, uuid)
        if decisions:
            answer = await access.service.update_columns(access.who, uuid, decisions)
            lost = _lost(view, decisions)
            show_answer(uuid, answer, as_json=as_json, lost=lost)
            return
    if as_json:
        print_json(to_json(view))
    else:
        _show_columns(view)


def _lost(before: "ColumnsView", decisions: Sequence[ColumnDecision]) -> Sequence[LostField]:
    """Columns whose field, which they matched by themselves, a decision gave to another one."""
    given = {decision.target for decision in decisions if decision.target}
    decided = {decision.id for decision in decisions}
    return [
        LostField(column.id, column.header, column.target)
        for column in before.columns
        if column.target in given and column.id not in decided
    ]


def _show_columns(view: "ColumnsView") -> None:
    made = table("ID", "column", "means", "match", "score", "or", "samples", numbers=["ID"])
    for column in view.columns:
        made.add_row(
            text(column.id),
            text(column.header),
            text(column.target),
            match_words(column.status),
            text(f"{column.confidence:.2f}"),
            text(_names(column.alternatives)),
            text(", ".join(column.samples[:SAMPLES_SHOWN])),
        )
    console().print(made)


@app.command()
def values(
    context: typer.Context,
    uuid: UuidArgument,
    only_open: Annotated[
        bool, typer.Option("--open", help="Only those without a meaning.")
    ] = False,
    targets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="ID=ENTITY", help="What a value means; may be repeated."),
    ] = None,
    confirm: ConfirmOption = None,
    ignore: Annotated[
        list[int] | None,
        typer.Option(metavar="ID", help="The cell counts as empty; may be repeated."),
    ] = None,
    create: Annotated[
        list[int] | None,
        typer.Option(metavar="ID", help="Make a candidate of this name; may be repeated."),
    ] = None,
    reset: Annotated[
        list[int] | None,
        typer.Option(metavar="ID", help="Take the decision back; may be repeated."),
    ] = None,
    for_all: Annotated[
        bool,
        typer.Option(
            "--for-all", help="Answer every open question about people of the same kind as well."
        ),
    ] = False,
    page: Annotated[int, typer.Option(min=0, help="200 values are a page; from 0.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Show what values mean, or decide it; `candidates` shows what there is to choose from.

    About a person, --confirm says that it is the one who is suggested, --create that it is
    another one, --ignore leaves the row out.

    \b
    Examples:
      docflow spreadsheets values 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 --open
      docflow spreadsheets values 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 --set 3=43 --create 4
    """
    with failures_in_one_line():
        decisions = _decisions(
            CellDecision,
            {"target_id": _pairs(targets or [], "ENTITY", int)},
            {
                "confirm": confirm or [],
                "ignore": ignore or [],
                "create": create or [],
                "reset": reset or [],
            },
        )
        if for_all:
            decisions = [each.model_copy(update={"for_all": True}) for each in decisions]
    status = MappingStatus.UNMATCHED if only_open else None
    run(_values(cli_context(context), uuid, decisions, status, page, as_json=as_json))


async def _values(
    cli: CliContext,
    text: str,
    decisions: Sequence[CellDecision],
    status: MappingStatus | None,
    page: int,
    *,
    as_json: bool,
) -> None:
    from activities.spreadsheets.value_store import ValueFilter

    uuid = parse_uuid(text)
    async with open_access(cli) as access:
        if decisions:
            answer = await access.service.update_cells(access.who, uuid, decisions)
            show_answer(uuid, answer, as_json=as_json)
            return
        wanted = ValueFilter(status=status)
        view = await access.service.cells(access.who, uuid, wanted, page=page, size=200)
    if as_json:
        print_json(to_json(view))
    else:
        _show_values(view)


def _show_values(view: "CellsView") -> None:
    names = ("ID", "field", "value", "rows", "means", "match", "or", "why it is asked")
    made = table(*names, numbers=["ID", "rows"])
    for value in view.items:
        made.add_row(
            text(value.id),
            text(value.field),
            text(value.value),
            text(f"{value.rows:,}"),
            text(value.target_name),
            match_words(value.status),
            text(_names(value.alternatives)),
            text(value.reason),
        )
    console().print(made)
    if len(view.items) < view.total:
        typer.echo(f"{len(view.items):,} of {view.total:,}; --page shows the others", err=True)


@app.command()
def candidates(
    context: typer.Context,
    uuid: UuidArgument,
    field: Annotated[str, typer.Option(help="Field whose values are to be understood.")],
    query: Annotated[str, typer.Option(help="Part of a name.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Show what the values of a field may mean, the likeliest first.

    \b
    Example:
      docflow spreadsheets candidates 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 \\
          --field EVENT_CATEGORY_NAME --query senior
    """
    run(_candidates(cli_context(context), uuid, field, query, as_json=as_json))


async def _candidates(cli: CliContext, uuid: str, field: str, query: str, *, as_json: bool) -> None:
    async with open_access(cli) as access:
        found = await access.service.candidates(access.who, parse_uuid(uuid), field, query)
    if as_json:
        print_json([{"id": each.id, "name": each.name} for each in found])
        return
    made = table("ENTITY", "name", numbers=["ENTITY"])
    for each in found:
        made.add_row(text(each.id), text(each.name))
    console().print(made)


def _names(alternatives: "Sequence[Alternative]") -> str:
    return ", ".join(
        f"{each.name} ({each.score:.2f}{f', {each.id}' if each.id else ''})"
        for each in alternatives
    )


Parsed = TypeVar("Parsed", str, int)


def _pairs(given: Sequence[str], what: str, parse: Callable[[str], Parsed]) -> Mapping[int, Parsed]:
    pairs: dict[int, Parsed] = {}
    for each in given:
        id, _, target = each.partition("=")
        try:
            pairs[int(id)] = parse(target)
        except ValueError:
            raise UsageError(f"--set {each!r}: write ID={what}, for example --set 3=43") from None
    return pairs


def _decisions(
    kind: type[Decision],
    targets: Mapping[str, Mapping[int, str | int]],
    flags: Mapping[str, Sequence[int]],
) -> Sequence[Decision]:
    decided = [(id, {name: to}) for name, pairs in targets.items() for id, to in pairs.items()]
    decided += [(id, {name: True}) for name, ids in flags.items() for id in ids]
    ids = [id for id, _ in decided]
    if twice := sorted({id for id in ids if ids.count(id) > 1}):
        raise UsageError(f"{_NOUNS[kind]} {', '.join(map(str, twice))} has two decisions; give one")
    try:
        return [kind.model_validate({"id": id, **decision}) for id, decision in decided]
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        raise UsageError(f"{wrong['loc'][0]} {wrong['input']!r}: {problem_text(wrong)}") from None
