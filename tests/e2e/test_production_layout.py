"""The layout of production: PostgreSQL, Azure Storage, a bridge and a worker apart."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from adapters.azure.blobs import AzureBlobs
from adapters.database.engine import open_database
from adapters.files.documents import FileDocuments
from adapters.ports.errors import BlobNotFound
from stack.azurite import azurite
from stack.children import child
from stack.embedded import DOCFLOW, service_bus
from stack.sample_club import sample_club
from stack.temporal import temporal_server
from tests.support.cli import run_docflow_in_thread
from tests.support.fresh_database import fresh_url
from tests.support.gateway import logged_in
from tests.support.processes import start
from workers.shared.cli.context import CliContext

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def settings(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Mapping[str, str]]:
    folder = tmp_path_factory.mktemp("production")
    async with AsyncExitStack() as stack:
        url = fresh_url()
        storage = await stack.enter_async_context(azurite(folder / "azurite"))
        temporal = await stack.enter_async_context(temporal_server(folder, ui=False))
        queue = await stack.enter_async_context(
            service_bus(folder, ["import-queue:lock=30,max=10"])
        )
        async with open_database(url) as database:
            await sample_club(database)
        await AzureBlobs(storage, "imports").create_container()
        settings = {
            "PATH": os.environ["PATH"],
            "TEMPORAL_ADDRESS": temporal.address,
            "AZURE_SERVICE_BUS_CONNECTION_STRING": queue,
            "AZURE_STORAGE_CONNECTION_STRING": storage,
            "DATABASE_URL": url,
            "DOCFLOW_SCRATCH": str(folder / "scratch"),
            # Both paths are taken: the samples are between 1 and 20 KB.
            "DOCFLOW_SMALL_DOCUMENT_BYTES": "5000",
        }
        for name, command in (
            ("worker", ("worker", "all")),
            ("bridge", ("bridge", "service-bus")),
        ):
            log = folder / f"{name}.log"
            await stack.enter_async_context(child([*DOCFLOW, *command], log, settings))
        await stack.enter_async_context(logged_in(folder, settings))
        # Commands inside this process find Temporal there.
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("TEMPORAL_ADDRESS", temporal.address)
        yield settings


async def _docflow(settings: Mapping[str, str], *arguments: str) -> tuple[int, str]:
    done = await run_docflow_in_thread(*arguments, context=CliContext(settings))
    return done.exit_code, done.output


@pytest.mark.parametrize(
    ("file", "document_type", "counts"),
    [
        ("equipment.csv", "equipment", "created 15, problems 5, rejected 5"),
        ("materials.xlsx", "material", "created 21, problems 3, rejected 3"),
    ],
)
async def test_a_document_is_imported_end_to_end(
    settings: Mapping[str, str], tmp_path: Path, file: str, document_type: str, counts: str
) -> None:
    task = f"{document_type}-1"
    code, output = await _docflow(
        settings,
        *("import", "submit", f"samples/{file}", "--type", document_type),
        *("--project", "P1", "--task", task),
    )
    assert (code, counts in output) == (0, True), output
    report = tmp_path / "report.xlsx"
    code, output = await _docflow(settings, "report", f"P1/{task}", "--out", str(report))
    assert code == 0, output
    with FileDocuments().open_table(report) as table:
        header, *rows = (cells for _, cells in table.rows())
    assert header[0] == "what is wrong"
    assert len(rows) == int(counts.split()[-1])
    blobs = AzureBlobs(settings["AZURE_STORAGE_CONNECTION_STRING"], "imports")
    with pytest.raises(BlobNotFound):
        await blobs.stat(f"uploads/P1/{task}/{file}")


async def test_a_schedule_is_uploaded_and_extracted(settings: Mapping[str, str]) -> None:
    common = ("import", "submit", "samples/unit100.xer", "--project", "P2")
    upload = ("--type", "schedule_upload", "--target-blob", "schedules/unit100.xer")
    # As a shell runs it; the other commands of this module run inside of this process.
    process = await start(settings, *common, *upload)
    printed, errors = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, (printed + errors).decode()
    code, output = await _docflow(
        settings,
        *common,
        *("--type", "schedule_extraction", "--primavera-project", "UNIT100"),
    )
    assert (code, "created 196" in output) == (0, True), output


async def test_a_spreadsheet_is_imported_end_to_end(
    settings: Mapping[str, str], tmp_path: Path
) -> None:
    code, output = await _docflow(
        settings,
        *("upload", "submit", "samples/registrations.xlsx", "-o", "json", "--auto-start"),
        *("--type", "EVENT_PARTICIPANT", "--context", "1"),
    )
    assert code == 0, output
    uuid = json.loads(output)["uuid"]
    async with asyncio.timeout(60):
        while "COMPLETED" not in output:
            await asyncio.sleep(0.1)
            code, output = await _docflow(settings, "upload", "show", uuid)
            assert code == 0 and "FAILED" not in output, output
    assert "58 created, 0 updated, 0 skipped, 2 error" in output
    report = tmp_path / "errors.xlsx"
    code, output = await _docflow(settings, "report", uuid, "--out", str(report))
    assert code == 0, output
    with FileDocuments().open_table(report) as table:
        assert len(list(table.rows())) == 3
