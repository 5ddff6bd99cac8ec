"""The command that writes rows of a type into a file."""

import sys
import threading
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import IO, TYPE_CHECKING, Annotated, Any, Final

import typer

from workers.shared.cli.answers import (
    pairs_of,
)
from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import CommandError, ExitCode, UsageError, run
from workers.shared.cli.output import output_file
from workers.shared.cli.standard_output import OutputLost

if TYPE_CHECKING:
    from activities.imports.views import SqlImportedRows
    from adapters.database.engine import Database
    from adapters.types.targets import TargetTables
    from workflows.imports.types import TableSpec
    from workflows.shared.declared_types import DeclaredType
    from workflows.shared.fields import FieldSpec

app = typer.Typer(rich_markup_mode=None)

ScopeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--scope",
        metavar="NAME=VALUE",
        help="A value of the scope, in addition to the project.",
    ),
]


async def in_force(cli: CliContext) -> Mapping[str, "DeclaredType"]:
    from adapters.types.store import SqlDeclaredTypes

    async with cli.tables() as database:
        return await SqlDeclaredTypes(database).in_force()


async def type_named(cli: CliContext, name: str) -> "DeclaredType":
    """A type by its name.

    Raises:
        UsageError: No type has that name.
    """
    from adapters.types.files import own_types
    from workflows.shared.declared_fields import meant

    own = own_types()
    if name in own:
        return own[name]
    declared = await in_force(cli)
    if name not in declared:
        known = sorted((*own, *declared))
        listed = f"{meant(name, known)}there are {', '.join(known)}"
        raise UsageError(f"there is no type {name}; {listed}")
    return declared[name]


@asynccontextmanager
async def open_targets(cli: CliContext, database: "Database") -> AsyncGenerator["TargetTables"]:
    """Open the tables of teams."""
    from adapters.database.foreign import ForeignDatabases
    from adapters.types.targets import TargetTables
    from workers.shared.settings.targets import TargetSettings

    urls = TargetSettings.read(cli.environment).databases
    async with ForeignDatabases(database, urls) as databases:
        yield TargetTables(databases)


class Format(StrEnum):
    """How a table is written."""

    CSV = "csv"
    XLSX = "xlsx"
    PARQUET = "parquet"


@app.command()
def export(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TYPE", help="Type of the rows.")],
    project: Annotated[
        str | None,
        typer.Option(help="Project whose rows are written [the only one that has rows]."),
    ] = None,
    scope: ScopeOption = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Rows of every scope, each with the values of its scope."),
    ] = False,
    format: Annotated[
        Format | None, typer.Option("--format", help="Of the file [by its name, else csv].")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="File to write; standard output if absent."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Write the rows of a type into a file that the import takes again.

    Columns that the type keeps beside its fields are written too, under their own headers. The
    columns are called as the import knows them: correct the file and submit it, and exactly
    the rows that you changed are updated. In CSV, text that a spreadsheet program would run as a
    formula has an apostrophe in front, which the import takes off again.

    An import reads rows of one scope: --all is for other programs and for people.

    \b
    Examples:
      docflow type export equipment --project P1 --format xlsx --out rows.xlsx
      docflow type export equipment --all --out equipment.csv
      docflow type export mto --project P1 --scope service_id=piping
      docflow type export MEMBERSHIP --scope membership_period_id=3 --out members.xlsx
    """
    chosen = format or _format_of(out)
    given = {**({} if project is None else {"project_id": project})}
    given |= pairs_of("--scope", scope or ())
    run(_export(cli_context(context), name, given, chosen, out, every=every, force=force))


def _format_of(out: Path | None) -> Format:
    """What the name of a file says."""
    suffix = "" if out is None else out.suffix.lower().removeprefix(".")
    return Format(suffix) if suffix in tuple(Format) else Format.CSV


def _within(spec: "TableSpec", given: Mapping[str, str]) -> dict[str, str]:
    """The given values of the scope of a table, as messages have them.

    Raises:
        UsageError: One too many is given.
    """
    from workflows.imports.messages import scope_value

    if more := sorted(given.keys() - {"project_id", *spec.scope}):
        raise UsageError(f"rows of this type have no {more[0]}")
    return {name: scope_value(given[name]) for name in spec.scope if name in given}


_LARGEST_ID: Final = 2**53


def _owner(declared: "DeclaredType", given: Mapping[str, str], *, every: bool) -> int | None:
    """Id of what rows about people or clubs belong to; None: they are those of all.

    Raises:
        UsageError: It is missing, no number, or not what such rows belong to.
    """
    from workflows.shared.declared_types import PeopleType

    (scope,) = declared.scope
    if isinstance(declared, PeopleType) and declared.hook is None:
        raise UsageError(
            f"no files are of type {declared.name}: the other types about people have its fields"
        )
    if more := sorted(given.keys() - {scope}):
        raise UsageError(f"rows of this type have no {more[0]}")
    if every:
        return None
    value = given.get(scope, "")
    if not (value.isascii() and value.isdigit() and int(value) <= _LARGEST_ID):
        raise UsageError(f"name one with --scope {scope}=ID, or write all of them with --all")
    return int(value)


_SCOPES: Final = 10


async def _refuse_several(
    rows: "SqlImportedRows", spec: "TableSpec", scope: Mapping[str, str]
) -> None:
    """See that rows have one scope, or none.

    Raises:
        UsageError: They have several.
    """
    if scope.keys() >= {*spec.scope}:
        return
    found = await rows.scopes(spec, scope, _SCOPES + 1)
    if len(found) > 1:
        shown = [", ".join(f"{n}={value}" for n, value in each.items()) for each in found]
        more = "; and more" if len(found) > _SCOPES else ""
        raise UsageError(
            f"rows of this type are in several scopes: {'; '.join(shown[:_SCOPES])}{more}. Name "
            "one with --project and --scope, or write all of them with --all"
        )


def _titled(spec: "TableSpec", kept: Sequence[str], *, with_scope: bool) -> Sequence["FieldSpec"]:
    """The columns of a file: scope, fields, and what rows keep beside them."""
    from workflows.shared.fields import ColumnKind, FieldSpec, squash

    declared = spec.declared
    stored = spec.scope if declared is None else declared.stored_scope
    names = [
        # A column that means a field by now is another one than that of the field.
        f"kept {header}" if squash(header) in spec.by_header else header
        for header in kept
    ]
    return (
        *(FieldSpec(name, ColumnKind.TEXT) for name in (stored if with_scope else ())),
        *spec.fields,
        *(FieldSpec(name, ColumnKind.TEXT) for name in names),
    )


def _readable(
    fields: Sequence["FieldSpec"], rows: Iterator[tuple[Any, ...]]
) -> Iterator[tuple[Any, ...]]:
    """Rows whose durations are written as an import reads them."""
    from workflows.shared.durations import duration_text
    from workflows.shared.fields import ColumnKind

    places = {n for n, each in enumerate(fields) if each.kind is ColumnKind.DURATION}
    if not places:
        return rows
    return (
        tuple(
            duration_text(value) if n in places and value is not None else value
            for n, value in enumerate(row)
        )
        for row in rows
    )


async def _export(
    cli: CliContext,
    name: str,
    given: Mapping[str, str],
    format: Format,
    out: Path | None,
    *,
    every: bool,
    force: bool,
) -> None:
    from activities.imports.tables import spec_of
    from activities.imports.views import SqlImportedRows
    from activities.shared.failures import WorkerThread, from_thread
    from adapters.types.files import builtin_types, own_types
    from adapters.types.own_rows import SqlOwnRows

    declared = await type_named(cli, name)
    if declared.target is not None and declared.target.file is not None:
        raise CommandError(
            f"rows of {name} go into files of the blob store, one for each import; docflow does "
            "not keep them. `docflow show` of an import names its file"
        )

    stopped = threading.Event()
    with ExitStack() as stack:
        target: Path | IO[bytes] = sys.stdout.buffer
        if out is not None:
            target = stack.enter_context(output_file(out, force=force))
        elif format is not Format.CSV:
            target = stack.enter_context(_temporary(f"rows.{format}"))
        async with (
            cli.tables() as database,
            open_targets(cli, database) as targets,
            WorkerThread() as thread,
        ):
            if name in own_types() and name not in builtin_types():
                own = SqlOwnRows(database, declared, _owner(declared, given, every=every))
                fields, reading = await own.fields(with_scope=every), own.read(with_scope=every)
            else:
                spec = spec_of(declared)
                scope = _within(spec, given)
                stored = SqlImportedRows(database, targets)
                if not every:
                    await _refuse_several(stored, spec, scope)
                kept = await stored.kept(spec, scope)
                fields = _titled(spec, kept, with_scope=every)
                reading = stored.read(spec, scope, kept, with_scope=every)
            async with aclosing(reading) as pages:
                rows = _readable(fields, from_thread(pages, stopped))
                try:
                    count = await thread.run(lambda: _write(format, fields, rows, target))
                finally:
                    stopped.set()
        if out is None and isinstance(target, Path):
            _pour(target)
    typer.echo(f"{count:,} row{'' if count == 1 else 's'}", err=True)


def _write(
    format: Format,
    fields: Sequence["FieldSpec"],
    rows: Iterator[tuple[Any, ...]],
    target: Path | IO[bytes],
) -> int:
    from adapters.files.tables.workbooks import write_csv, write_parquet, write_xlsx

    if format is Format.CSV:
        if not isinstance(target, Path):
            return write_csv(fields, rows, target)
        with target.open("wb") as file:
            return write_csv(fields, rows, file)
    assert isinstance(target, Path)
    write = write_xlsx if format is Format.XLSX else write_parquet
    return write(fields, rows, target)


@contextmanager
def _temporary(name: str) -> Generator[Path]:
    """A file on the way to standard output.

    Raises:
        CommandError: There is no room for it.
    """
    try:
        with TemporaryDirectory(prefix="docflow-") as folder:
            yield Path(folder) / name
    except OutputLost:
        raise
    except OSError as error:
        raise CommandError(
            f"cannot write to {gettempdir()}: {error.strerror}; name a file with --out, or "
            "another folder by TMPDIR",
            ExitCode.NOT_WRITTEN,
        ) from error


def _pour(file: Path) -> None:
    """Write a file to standard output."""
    with file.open("rb") as source:
        while block := source.read(1 << 20):
            sys.stdout.buffer.write(block)
