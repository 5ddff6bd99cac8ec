"""An import that is tried without anything being written: on a copy of the rows that it meets.

The copies are temporary tables of one session, which sees no others. PostgreSQL removes them with
the session, however that ends.
"""

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, Final

from sqlalchemy import MetaData, Table, insert, select, text
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.imports.lifecycle import DeleteImports, UploadImports
from activities.imports.rows import RowImports
from activities.imports.schedules import ScheduleImports
from activities.imports.store import SqlImportStore
from activities.imports.tables import TableTypes
from adapters.database.engine import Database
from adapters.database.foreign import ForeignDatabases
from adapters.database.models.every import DOMAIN, STAGED, metadata
from adapters.database.models.imports import (
    SCHEDULES,
    import_answers,
    schedule_aliases,
    schedule_uploads,
)
from adapters.files.blobs import FolderBlobs
from adapters.files.documents import FileDocuments
from adapters.files.tables.workbooks import XlsxReportWriter
from adapters.ports.errors import Unavailable
from adapters.types.tables import SCHEMA, target_of
from adapters.types.targets import TargetTables
from workflows.imports.messages import (
    AnyTableMessage,
    FileMessage,
    ImportMessage,
    ScheduleUploadMessage,
)
from workflows.imports.runs import (
    Handler,
    HandlerInput,
    HandlerOutcome,
    ImportPlan,
    TypeInfo,
)
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import UNAVAILABLE

_SCHEMA: Final = text(
    "SELECT nspname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
    " WHERE pg_class.oid = to_regclass('import_answers')"
)
"""Where the tables of docflow are."""


@dataclass(frozen=True)
class Rehearsal:
    """What an import would do."""

    outcome: HandlerOutcome
    parks: str | None
    """Why it would wait for a person; None: it would be completed."""
    report: Path | None
    """The report of rejected rows; gone when the rehearsal is closed."""


@contextmanager
def _named_temporary_folder() -> Generator[None]:
    """Name the temporary folder where it is what cannot be written.

    Raises:
        Unavailable: It cannot.
    """
    try:
        yield
    except (OSError, Unavailable) as error:
        raise _not_written(str(error)) from error


def _not_written(reason: str) -> Unavailable:
    return Unavailable(
        f"the dry run cannot write to {gettempdir()} ({reason.rpartition(': ')[2]}); make room "
        "there, or name another folder by TMPDIR",
        Dependency.SCRATCH_DISK,
    )


@asynccontextmanager
async def rehearsed(
    database: Database,
    message: ImportMessage,
    file: Path | None,
    databases: Mapping[str, str] | None = None,
) -> AsyncGenerator[Rehearsal]:
    """Do all of an import but on a copy: the same steps, over the same rows of its project.

    Args:
        database: Whose rows are copied; nothing in it changes.
        message: What would be imported.
        file: Its document, of the types that work from one.
        databases: Name of each database of a team to its URL. What is written there is rolled back,
            chunk by chunk.

    Raises:
        Unavailable: The database cannot be read, or the temporary folder not be written.
    """
    with ExitStack() as held:
        with _named_temporary_folder():
            folder = Path(held.enter_context(TemporaryDirectory(prefix="docflow-dry-run-")))
            (folder / "blobs").mkdir()
            blobs = FolderBlobs(folder / "blobs")
        async with database.reading() as connection:
            schema = (await connection.execute(_SCHEMA)).scalar_one()
        types = TableTypes(database, schema=None)
        facts = await types.facts(message)
        referred = await _referred_by(types, message, facts)
        async with (
            database.session() as session,
            ForeignDatabases(database, databases, dry=True) as there,
        ):
            await _copy(session, schema, message, facts, referred)
            store = SqlImportStore(session, types, TargetTables(there))
            yield await _tried(store, blobs, folder, message, facts, file)


async def _referred_by(
    types: TableTypes, message: ImportMessage, facts: TypeInfo
) -> Sequence[Table]:
    """Tables whose rows the document may refer to, but its own."""
    if not isinstance(message, AnyTableMessage):
        return ()
    spec = await types.spec(message, facts)
    referred = (await types.referred(spec)).values()
    names = {each.table for each in referred if each.table not in (None, spec.table)}
    return [DOMAIN[name] for name in sorted(map(str, names)) if target_of(name) is None]


async def _copy(
    session: Database,
    schema: str,
    message: ImportMessage,
    facts: TypeInfo,
    referred: Sequence[Table],
) -> None:
    """Make an empty copy of every table, and fill those that decide with the project's rows.

    If the message has a service, only the rows of the service are copied.

    Args:
        session: Takes the copies.
        schema: Of the tables.
        message: What would be imported.
        facts: What is known about its type.
        referred: Tables whose rows it may refer to.
    """
    scope = {"project_id": message.project_id}
    if (service := getattr(message, "service_id", None)) is not None:
        scope["service_id"] = service
    async with session.transaction() as connection:
        met = (*_met_by(message, facts), *referred)
        declared = [each for each in met if each.name not in metadata.tables]
        if facts.type_digest is not None:
            declared.append(STAGED[str(facts.table)])
        for table in (*metadata.sorted_tables, *declared):
            if table.schema is None:
                home = SCHEMA if table in declared else schema
                like = f'(LIKE "{home}"."{table.name}" INCLUDING ALL)'
                await connection.exec_driver_sql(f'CREATE TEMP TABLE "{table.name}" {like}')
        for table in met:
            home = SCHEMA if table in declared else schema
            stored = table.to_metadata(MetaData(), schema=home)
            mine = (stored.c[name] == value for name, value in scope.items() if name in stored.c)
            rows = select(stored).where(*mine)
            await connection.execute(insert(table).from_select([*stored.c.keys()], rows))


async def _tried(
    copy: SqlImportStore,
    blobs: FolderBlobs,
    folder: Path,
    message: ImportMessage,
    facts: TypeInfo,
    file: Path | None,
) -> Rehearsal:
    source = None
    if file is not None:
        with _named_temporary_folder():
            source = await blobs.upload(file, _blob_of(message))
    plan = ImportPlan(facts=facts, path="remote", source=source, delete_source=True)
    work = HandlerInput(message=message, plan=plan)
    try:
        outcome: HandlerOutcome = await ActivityEnvironment().run(
            _handler(facts.handler, copy, blobs, folder), work
        )
    except ApplicationError as error:
        if error.type == UNAVAILABLE:
            if error.details[0] == Dependency.DATABASE.value:
                raise Unavailable(error.message, Dependency.DATABASE) from error
            # All else that it uses stands in the temporary folder.
            raise _not_written(error.message) from error
        return Rehearsal(HandlerOutcome(), error.message, None)
    report = None
    if outcome.report is not None:
        report = folder / "report.xlsx"
        await blobs.download(outcome.report.name, report)
    return Rehearsal(outcome, outcome.held_back, report)


def _handler(handler: Handler, store: SqlImportStore, blobs: FolderBlobs, folder: Path) -> Any:
    documents, reports, scratch = FileDocuments(), XlsxReportWriter(), folder / "scratch"
    schedules = ScheduleImports(store, blobs, documents, reports, scratch)
    match handler:
        case Handler.LOAD_ROWS:
            return RowImports(store, blobs, documents, reports, scratch).load_rows
        case Handler.LOAD_SCHEDULE:
            return schedules.load_schedule
        case Handler.LIST_SCHEDULE_PROJECTS:
            return schedules.list_schedule_projects
        case Handler.CHANGE_ACTIVITIES:
            return schedules.change_activities
        case Handler.STORE_UPLOAD:
            return UploadImports(store, blobs, scratch).store_upload
        case Handler.DELETE_SERVICE:
            return DeleteImports(store).delete_service


def _met_by(message: ImportMessage, facts: TypeInfo) -> Sequence[Table]:
    """Tables whose rows decide what an import does."""
    name = facts.table
    if isinstance(message, ScheduleUploadMessage):
        return (schedule_uploads,)
    if name is None:
        return ()
    if target_of(name) is not None:
        return (import_answers,)
    table = DOMAIN[name]
    return (*SCHEDULES, schedule_aliases) if table in SCHEDULES else (table, import_answers)


def _blob_of(message: ImportMessage) -> str:
    if isinstance(message, ScheduleUploadMessage):
        assert message.source_blob_name is not None
        return message.source_blob_name
    assert isinstance(message, FileMessage)
    return message.blob_name
