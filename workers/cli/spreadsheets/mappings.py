"""Columns and values of an import: what they mean, and decisions about it."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from pydantic import ValidationError

from contracts.base import problem_text
from contracts.spreadsheets import CellDecision, ColumnDecision, MappingStatus
from workers.cli.context import CliContext, cli_context
from workers.cli.errors import UsageError, failures_in_one_line, run
from workers.cli.output import JsonOption, console, print_json, table, text
from workers.cli.spreadsheets.answers import LostField, show_answer
from workers.cli.spreadsheets.context import UuidArgument, open_access, parse_uuid
from workers.cli.spreadsheets.output import as_json as to_json
from workers.cli.spreadsheets.output import match

if TYPE_CHECKING:
    from adapters.database.spreadsheets.views import CellsView, ColumnsView
    from contracts.spreadsheets import Alternative

SAMPLES_SHOWN = 3
Decision = TypeVar("Decision", ColumnDecision, CellDecision)

ConfirmOption = Annotated[
    list[int] | None, typer.Option(metavar="ID", help="The match is right; may be repeated.")
]

_NOUNS: Mapping[type[ColumnDecision | CellDecision], str] = {
    ColumnDecision: "column",
    CellDecision: "value",
}

app = typer.Typer(rich_markup_mode=None)


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
            match(column.status),
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
    from adapters.database.spreadsheets.views import ValueFilter

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
            match(value.status),
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
