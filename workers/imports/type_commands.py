"""How commands show declared types, put them in force, and write imported rows again."""

from collections import defaultdict
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from adapters.ports.errors import UnreadableDocument
from workers.imports import type_export
from workers.imports.type_export import ScopeOption, in_force, open_targets, type_named
from workers.shared.cli.answers import (
    DateOrderOption,
    DecimalOption,
    EncodingOption,
    KeepLinesOption,
    LeftOutOption,
    MapOption,
    SheetOption,
    map_of,
    pairs_of,
)
from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import CommandError, ExitCode, UsageError, run, stop
from workers.shared.cli.output import console, output_file, print_json, table, text
from workflows.shared.errors import InvalidDocument, RuleViolation

if TYPE_CHECKING:
    from activities.imports.type_checks import Checked, Stored
    from adapters.types.store import Plan, Removed
    from workflows.shared.declared_types import DeclaredType

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)

app.add_typer(type_export.app)

FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="FOLDER",
        help="Folder of the type files [DOCFLOW_TYPES].",
        file_okay=False,
        exists=True,
    ),
]
NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[TYPE]...", help="Types [all of the folder].")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_types(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the types that documents may have: docflow's own and the declared ones.

    \b
    Example:
      docflow type list
    """
    run(_list(cli_context(context), as_json=as_json))


async def _list(cli: CliContext, *, as_json: bool) -> None:
    from adapters.types.files import own_types

    own, declared = own_types(), await in_force(cli)
    every = (*own.values(), *declared.values())
    if as_json:
        print_json(
            [
                {
                    **each.model_dump(include={"name", "title", "scope", "key"}),
                    "fields": list(each.fields),
                    "digest": each.digest,
                    "own": each.name in own,
                }
                for each in every
            ]
        )
        return
    made = table("type", "title", "key", "fields", "version", numbers=["fields"])
    for each in every:
        version = "docflow" if each.name in own else each.digest[:12]
        key = ", ".join(each.natural_key)
        made.add_row(*map(text, (each.name, each.title, key, len(each.fields), version)))
    console().print(made)


@app.command()
def show(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="TYPE", help="Name of the type.")] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="The JSON Schema of type files instead, for editors.")
    ] = False,
) -> None:
    """Print the declaration of a type, as a file.

    \b
    Examples:
      docflow type show equipment
      docflow type show --schema > type.schema.json
    """
    if schema:
        from adapters.types.schema import schema_text

        typer.echo(schema_text(), nl=False)
    elif name is None:
        stop(UsageError("name the type, or --schema"))
    else:
        run(_show(cli_context(context), name))


async def _show(cli: CliContext, name: str) -> None:
    from adapters.types.files import people_types, type_text

    declared = await type_named(cli, name)
    if name in people_types() and people_types()[name].hook is None:
        typer.echo("# no files are of this type: the other types about people have its fields")
    typer.echo(type_text(declared), nl=False)


@app.command()
def new(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TYPE", help="What to call the type.")],
    sample: Annotated[
        Path,
        typer.Option(
            "--from", metavar="FILE", help="A file of such rows.", exists=True, dir_okay=False
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE.yaml", help="File to write; output if absent."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Draft a type from a file: kinds, keys, choices and headers that its rows show.

    What is not sure is a comment. Read the draft before you apply it.

    \b
    Example:
      docflow type new tools --from tools.xlsx --out types/tools.yaml
    """
    run(_new(name, sample, out, force=force))


async def _new(name: str, sample: Path, out: Path | None, *, force: bool) -> None:
    from activities.imports.type_drafts import draft
    from adapters.types.files import read_type
    from adapters.types.store import refuse_own

    try:
        made = draft(name, sample)
        refuse_own(read_type(made, out.name if out else "draft"))
    except RuleViolation as error:
        raise CommandError(str(error)) from error
    except (InvalidDocument, UnreadableDocument) as error:
        raise CommandError(f"{sample.name}: {error}") from error
    if out is None:
        typer.echo(made, nl=False)
        return
    with output_file(out, force=force) as target:
        target.write_text(made, encoding="utf-8")
    typer.echo(f"{out}: read it, then `docflow type check {out} {sample}`", err=True)


@app.command()
def check(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="TYPE.yaml", help="The type.", exists=True, dir_okay=False)
    ],
    sample: Annotated[
        Path, typer.Argument(metavar="FILE", help="The sample.", exists=True, dir_okay=False)
    ],
    project: Annotated[
        str | None, typer.Option(help="Project in whose rows references are looked up.")
    ] = None,
    scope: ScopeOption = None,
    sheet: SheetOption = None,
    encoding: EncodingOption = None,
    columns: MapOption = None,
    date_order: DateOrderOption = None,
    decimal: DecimalOption = None,
    left_out: LeftOutOption = None,
    keep_lines: KeepLinesOption = None,
    most: Annotated[int, typer.Option("--rows", help="Rows to print at most.", min=1)] = 50,
    as_json: JsonOption = False,
) -> None:
    """Show what an import of a type would do with a file, row by row; nothing is written.

    The options are those of `docflow import submit`. References are looked up if there is a
    database; the note lists those that were not.

    Exit codes: 0 no row would be rejected, 1 some would, or the file cannot be imported.

    \b
    Examples:
      docflow type check types/tools.yaml tools.xlsx
      docflow type check types/tools.yaml tools.xlsx --sheet 2025 --map "No.=tool_no"
      docflow type check types/orders.yaml orders.csv --project P1 --date-order dmy
    """
    given = {
        "sheet": sheet,
        "encoding": encoding,
        "map": map_of(columns or ()) or None,
        "date_order": date_order,
        "decimal": decimal,
        "left_out": left_out,
        "keep_lines": keep_lines or None,
    }
    known = dict(pairs_of("--scope", scope or ()))
    run(_check(cli_context(context), file, sample, project, known, given, most, as_json=as_json))


async def _check(
    cli: CliContext,
    file: Path,
    sample: Path,
    project: str | None,
    scope: dict[str, str],
    given: Mapping[str, Any],
    most: int,
    *,
    as_json: bool,
) -> None:
    from activities.imports.type_checks import check
    from adapters.types.files import read_type
    from adapters.types.store import refuse_own
    from workers.imports.drafts import build_message
    from workflows.imports.messages import DeclaredMessage

    try:
        declared = read_type(file.read_text(encoding="utf-8"), file.name)
        refuse_own(declared)
        wanted = {name: _UNKNOWN for name in declared.scope if name != "project_id"} | scope
        told = {**given, "scope": wanted or None}
        message = build_message(declared.name, project or _UNKNOWN, _UNKNOWN, sample, told)
        assert isinstance(message, DeclaredMessage)
        known = {*scope} if project is None else {*scope, "project_id"}
        async with _stored(cli, declared, known) as stored:
            with TemporaryDirectory(prefix="docflow-") as folder:
                checked = await check(declared, sample, Path(folder), message, stored)
    except UnicodeDecodeError as error:
        raise CommandError(f"{file.name} is no UTF-8 text; save it as UTF-8") from error
    except RuleViolation as error:
        raise CommandError(str(error)) from error
    except (InvalidDocument, UnreadableDocument) as error:
        raise CommandError(f"{sample.name}: {error}") from error
    rejected = len(checked.rejected)
    if as_json:
        rows = [
            {
                "line": row.line,
                "values": {name: value for name, value in row.values.items()},
                "problems": [each.model_dump(mode="json") for each in row.problems],
            }
            for row in checked.rows
        ]
        accepted = len(rows) - rejected
        print_json({"rows": rows, "accepted": accepted, "rejected": rejected, "note": checked.note})
    else:
        _show_checked(declared, checked, most)
    if rejected:
        raise typer.Exit(ExitCode.FAILED)


@asynccontextmanager
async def _stored(
    cli: CliContext, declared: "DeclaredType", scope: Collection[str]
) -> AsyncGenerator["Stored"]:
    """What references of a type can be looked up in: the database, if there is one.

    Raises:
        RuleViolation: A table that a reference names lacks a column.
    """
    from activities.imports.store import SqlImportStore
    from activities.imports.type_checks import Stored
    from adapters.ports.errors import PortError
    from adapters.types.store import SqlDeclaredTypes
    from workers.shared.errors import SettingsError

    async with AsyncExitStack() as stack:
        stored = Stored(scope=scope)
        if any(field.kind == "reference" for field in declared.fields.values()):
            try:
                database = await stack.enter_async_context(cli.tables())
                targets = await stack.enter_async_context(open_targets(cli, database))
                types = SqlDeclaredTypes(database, targets)
                in_force = await types.in_force()
            except (SettingsError, PortError) as error:
                stored = Stored(scope=scope, why_not=f"no database ({error})")
            else:
                await types.check_tables(declared)
                store = SqlImportStore(database, targets=targets)
                stored = Stored(store, in_force, scope)
        yield stored


_UNKNOWN: Final = "check"
"""Stands for what only an import is told."""
_REASONS: Final = 5


def _show_checked(declared: "DeclaredType", checked: "Checked", most: int) -> None:
    """Print the rows, those that would be rejected first, and a summary."""
    from workflows.shared.cells import first_lines
    from workflows.shared.declared_types import OTHER

    names = [
        name
        for name in (*declared.fields, OTHER)
        if any(row.values.get(name) is not None for row in checked.rows)
    ]
    made = table("line", *names, "problems")
    for row in sorted(checked.rows, key=lambda each: not each.problems)[:most]:
        cells = ["" if (v := row.values.get(name)) is None else str(v) for name in names]
        said = "; ".join(f"{each.column} {each.reason}" for each in row.problems)
        made.add_row(*map(text, (str(row.line), *cells, said)))
    console().print(made)
    every, rejected = len(checked.rows), len(checked.rejected)
    more = f"; {every - most:,} rows are not shown, see --rows" if every > most else ""
    what = "1 row" if every == 1 else f"{every:,} rows"
    typer.echo(f"{what}: {every - rejected:,} accepted, {rejected:,} rejected{more}")
    lines = defaultdict[str, list[int]](list)
    for row in checked.rejected:
        for each in row.problems:
            lines[f"{each.column} {each.reason}"].append(row.line)
    reasons = sorted(lines.items(), key=lambda each: -len(each[1]))
    for reason, found in reasons[:_REASONS]:
        typer.echo(f"{len(found):,} x {reason}: {first_lines(found)}")
    if len(reasons) > _REASONS:
        typer.echo(f"and {len(reasons) - _REASONS:,} more reasons")
    if checked.note:
        typer.echo(checked.note)


@app.command()
def apply(
    context: typer.Context,
    names: NamesArgument = None,
    folder: FolderOption = None,
    allow_loss: Annotated[
        bool, typer.Option("--allow-loss", help="Carry out what loses values.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print the SQL, and what it changes of their meaning; do nothing."
        ),
    ] = False,
) -> None:
    """Put the types of a folder in force, all or none: make or widen their tables.

    New runs use them. Runs that are open keep the version that they began with.

    \b
    Examples:
      docflow type apply --dry-run
      docflow type apply invoice_lines
    """
    run(_each(cli_context(context), names or [], folder, None if dry_run else allow_loss))


async def _each(
    cli: CliContext, names: Sequence[str], folder: Path | None, allow_loss: bool | None
) -> None:
    """Plan the types of a folder; or apply them, if `allow_loss` is given."""
    from adapters.types.store import SqlDeclaredTypes
    from workers.shared.settings.targets import TargetSettings

    declared = _declared(cli, names, folder)
    receivers = TargetSettings.read(cli.environment).webhooks
    for each in declared:
        told = each.target and each.target.webhook
        if told and told not in receivers:
            raise CommandError(
                f"{each.name}: DOCFLOW_TYPE_WEBHOOKS has no {told!r}, which the type names as "
                "its webhook; add it here and where workers run"
            )
    async with cli.tables() as database, open_targets(cli, database) as targets:
        types = SqlDeclaredTypes(database, targets)
        try:
            if allow_loss is None:
                plans = await types.plan(*declared)
            else:
                named = ", ".join(each.name for each in declared)
                async with cli.noted(database, "type apply", named) as act:
                    plans = await types.apply(*declared, by=cli.user, allow_loss=allow_loss)
                    act.before = {each.declared.name: _digest(each.before) for each in plans}
                    act.after = {each.declared.name: each.declared.digest for each in plans}
        except RuleViolation as error:
            raise CommandError(str(error)) from error
    for each in plans:
        _print(each, applied=allow_loss is not None)


def _digest(declared: "DeclaredType | None") -> str | None:
    return None if declared is None else declared.digest


def _print(plan: "Plan", *, applied: bool) -> None:
    declared, before = plan.declared, plan.before
    is_new = before is None or before.digest != declared.digest
    if not plan.changes and not is_new:
        typer.echo(f"-- {declared.name}: nothing to do")
        _print_notes(plan)
        return
    what = "is in force now" if applied else "would be in force"
    old = "" if before is None else f" in the place of {before.digest[:12]}"
    typer.echo(f"-- {declared.name}: version {declared.digest[:12]} {what}{old}")
    for change in plan.changes:
        _print_loss(change.loses)
        if change.at is not None:
            typer.echo(f"-- in {change.at}, the only statement there:")
        typer.echo(f"{change.sql};")
    if plan.meanings:
        typer.echo("-- changes of meaning:")
    for meaning in plan.meanings:
        typer.echo(f"--   {meaning.says}")
        _print_loss(meaning.loses)
    _print_notes(plan)


def _print_notes(plan: "Plan") -> None:
    for note in plan.notes:
        typer.echo(f"-- note: {note}")


def _print_loss(loses: str | None) -> None:
    if loses is not None:
        typer.echo(f"-- loses {loses}; needs --allow-loss")


@app.command()
def remove(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TYPE", help="Type to take out of force.")],
    drop_table: Annotated[
        bool,
        typer.Option("--drop-table", help="Drop the table of docflow as well; one of yours stays."),
    ] = False,
    allow_loss: Annotated[
        bool, typer.Option("--allow-loss", help="Drop the table even if it has rows.")
    ] = False,
) -> None:
    """Take a type out of force: new messages of it become dead letters. Its rows stay.

    Runs that are open go on with their version. Remove its file from the folder as well: `apply`
    would put it in force again.

    \b
    Examples:
      docflow type remove tools
      docflow type remove tools --drop-table --allow-loss
    """
    run(_remove(cli_context(context), name, drop_table=drop_table, allow_loss=allow_loss))


async def _remove(cli: CliContext, name: str, *, drop_table: bool, allow_loss: bool) -> None:
    from adapters.types.store import SqlDeclaredTypes

    async with cli.tables() as database:
        try:
            async with cli.noted(database, "type remove", name) as act:
                removed = await SqlDeclaredTypes(database).remove(
                    name, drop_table=drop_table, allow_loss=allow_loss
                )
                act.after = {"table dropped": removed.dropped, "rows": removed.rows}
        except RuleViolation as error:
            raise CommandError(str(error)) from error
    typer.echo("; ".join((f"{name} is out of force", *_left(removed))))


def _left(removed: "Removed") -> Iterator[str]:
    """What becomes of the rows of a type that is out of force."""
    from adapters.types.targets import place_of

    target = removed.declared.target
    if removed.table is not None:
        rows = f"{removed.rows:,} row{'' if removed.rows == 1 else 's'}"
        what = "is dropped, with" if removed.dropped else "stays, with"
        yield f"{removed.table} {what} {rows}"
    if target is not None and target.table is not None:
        never = ", which docflow never drops" if removed.dropped else ""
        yield f"its rows stay in {target.table} in {place_of(target)}{never}"
    if target is not None and target.file is not None:
        yield "the files of its accepted rows stay in the blob store"


def _declared(cli: CliContext, names: Sequence[str], folder: Path | None) -> list["DeclaredType"]:
    """The types of a folder and of installed packages; only those with the given names, if any.

    Raises:
        UsageError: No folder is named; or it holds no such type.
        CommandError: A file is wrong.
    """
    from adapters.types.files import declared_in
    from workers.imports.settings import TypeSettings

    place = folder or TypeSettings.read(cli.environment).folder
    try:
        if place is not None and not place.is_dir():
            raise UsageError(f"DOCFLOW_TYPES: {place} is no folder")
        found = declared_in(place)
    except RuleViolation as error:
        raise CommandError(str(error)) from error
    if not found:
        raise UsageError("there are no types: name their folder with --folder or DOCFLOW_TYPES")
    if unknown := [name for name in names if name not in found]:
        from workflows.shared.declared_fields import meant

        listed = f"{meant(unknown[0], found)}there are {', '.join(sorted(found))}"
        raise UsageError(f"there is no type {unknown[0]}; {listed}")
    return _in_order([found[name] for name in names or sorted(found)])


def _in_order(types: Sequence["DeclaredType"]) -> list["DeclaredType"]:
    """Types that others refer to before those others; of types in a circle, in any order."""
    left, ordered = {each.name: each for each in types}, list["DeclaredType"]()
    while left:
        free = [
            each
            for each in left.values()
            if not {field.to for field in each.fields.values()} & (left.keys() - {each.name})
        ]
        for each in free or list(left.values()):
            ordered.append(left.pop(each.name))
    return ordered
