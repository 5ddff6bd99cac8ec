"""`docflow export`: imported rows come out again, in the columns in which they went in."""

import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, aclosing, contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import IO, Annotated, Any, Final

import typer

from contracts.imports import DocumentType
from domain.imports.tables import TABLES, TableSpec
from workers.cli.context import CliContext, cli_context
from workers.cli.errors import CommandError, ExitCode, UsageError, run
from workers.cli.output_files import output_file
from workers.cli.standard_output import OutputLost

SERVICE: Final = "service_id"


class Format(StrEnum):
    """How a table is written."""

    CSV = "csv"
    XLSX = "xlsx"
    PARQUET = "parquet"


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Write imported rows into a file that the import takes again.",
)

ProjectOption = Annotated[str, typer.Option(help="Project whose rows are written.")]
ServiceOption = Annotated[str | None, typer.Option(help="Service of take-off or estimate lines.")]
FormatOption = Annotated[
    Format | None,
    typer.Option("--format", help="Of the file [by its name, else csv]."),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="File to write; standard output if absent."),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace a file that exists.")]


def _command(document_type: DocumentType, spec: TableSpec) -> Callable[..., None]:
    def export(
        context: typer.Context,
        project: ProjectOption,
        service: ServiceOption = None,
        format: FormatOption = None,
        out: OutOption = None,
        force: ForceOption = False,
    ) -> None:
        chosen = format or _format_of(out)
        scope = _scope(document_type, spec, project, service)
        run(_export(cli_context(context), spec, scope, chosen, out, force=force))

    export.__doc__ = f"""Write the rows of type {document_type.value}.

    The columns are called as the import knows them: correct the file and submit it, and exactly
    the rows that you changed are updated. In CSV, text that a spreadsheet program would run as a
    formula has an apostrophe in front, which the import takes off again.

    \b
    Example:
      docflow export {document_type.value} --project P1 --format xlsx --out rows.xlsx
    """
    return export


for _type, _spec in TABLES.items():
    app.command(_type.value)(_command(_type, _spec))


def _format_of(out: Path | None) -> Format:
    """What the name of a file says."""
    suffix = "" if out is None else out.suffix.lower().removeprefix(".")
    return Format(suffix) if suffix in tuple(Format) else Format.CSV


def _scope(
    document_type: DocumentType, spec: TableSpec, project: str, service: str | None
) -> dict[str, str]:
    scope = {"project_id": project}
    if SERVICE in spec.scope:
        if service is None:
            raise UsageError(f"{document_type.value} needs --service")
        scope[SERVICE] = service
    elif service is not None:
        raise UsageError(f"{document_type.value} does not take --service")
    return scope


async def _export(
    cli: CliContext,
    spec: TableSpec,
    scope: dict[str, str],
    format: Format,
    out: Path | None,
    *,
    force: bool,
) -> None:
    from activities.threads import WorkerThread, from_thread
    from adapters.database.imports.export import SqlImportedRows

    stopped = threading.Event()
    with ExitStack() as stack:
        target: Path | IO[bytes] = sys.stdout.buffer
        if out is not None:
            target = stack.enter_context(output_file(out, force=force))
        elif format is not Format.CSV:
            target = stack.enter_context(_temporary(f"rows.{format}"))
        async with (
            cli.tables() as database,
            aclosing(SqlImportedRows(database).read(spec, scope)) as pages,
            WorkerThread() as thread,
        ):
            rows = from_thread(pages, stopped)
            try:
                count = await thread.run(lambda: _write(format, spec, rows, target))
            finally:
                stopped.set()
        if out is None and isinstance(target, Path):
            _pour(target)
    typer.echo(f"{count:,} row{'' if count == 1 else 's'}", err=True)


def _write(
    format: Format,
    spec: TableSpec,
    rows: Iterator[tuple[Any, ...]],
    target: Path | IO[bytes],
) -> int:
    from adapters.files.tables.export import write_csv, write_parquet, write_xlsx

    if format is Format.CSV:
        if not isinstance(target, Path):
            return write_csv(spec.fields, rows, target)
        with target.open("wb") as file:
            return write_csv(spec.fields, rows, file)
    assert isinstance(target, Path)
    write = write_xlsx if format is Format.XLSX else write_parquet
    return write(spec.fields, rows, target)


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
