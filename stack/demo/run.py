"""`docflow demo`: every pipeline over the samples, from queue and upload to a checked outcome."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import httpx
from rich.console import Console
from rich.live import Live
from temporalio.client import Client, WorkflowFailureError

from adapters.aws.session import open_aws
from adapters.database.engine import Database
from adapters.ports.blobs import Blobs
from stack.demo import batches as demo_batch
from stack.demo.api import ApiError
from stack.demo.batches import (
    ExternalSystems,
    failed_documents,
    judge,
    left_behind,
    run_batch,
)
from stack.demo.jobs import SceneFailed, SceneJob
from stack.demo.samples import PROJECT, Run, Sample, blob_name, divided, prepare
from stack.demo.spreadsheets import SpreadsheetPerson
from stack.demo.table import WIDE, demo_table
from stack.demo.transfers.file_transfer import CarryingFailed, FileCarrying, sent
from stack.demo.transfers.site import TransferSite, missing_parts, transfer_site
from stack.embedded import EmbeddedStack, embedded_stack
from stack.folders import demo_folder
from workers.batches.settings import BatchSettings
from workers.imports.runs import ImportRuns
from workers.imports.settings import QueueSettings
from workers.shared.connect import connect
from workers.shared.resources import open_resources
from workers.shared.services.errors import ServiceError
from workers.shared.services.service_bus import ServiceBusQueue, open_queue
from workflows.batches.runs import DocumentCounts
from workflows.imports.runs import Counts
from workflows.shared.contracts import Answer

TIMEOUT = 120.0
"""Seconds that one phase may take."""


async def run_demo(samples: Path, folder: Path, console: Console, *, keep: bool = False) -> int:
    """Run the samples on a fresh stack and compare what came out.

    Args:
        samples: Folder with `demo.json` (phases of samples) and the files it names.
        folder: Where the stack lives; emptied first. It is missing, empty or left by a demo.
        console: Where progress and the table go.
        keep: Leave the stack up afterwards, until it is interrupted.

    Returns:
        Exit code: 0 when every sample ended as expected.

    Raises:
        StackError: The folder has other files, a stack runs there, or a part did not start.
    """
    phases = [
        [Sample.model_validate(sample) for sample in phase]
        for phase in json.loads((samples / "demo.json").read_text())
    ]
    with demo_folder(folder):
        return await _run_demo(phases, samples, folder, console, keep=keep)


async def _run_demo(
    phases: Sequence[Sequence[Sample]],
    samples: Path,
    folder: Path,
    console: Console,
    *,
    keep: bool,
) -> int:
    began = time.monotonic()
    console.print(
        "starting Temporal, the Service Bus emulator, MiniStack, a worker and a gateway ..."
    )
    lacking = missing_parts()
    phases, left_out = divided(phases, lacking)
    async with AsyncExitStack() as opened:
        site = None
        if not lacking:
            site = await opened.enter_async_context(transfer_site(folder, samples))
        stack = await opened.enter_async_context(
            embedded_stack(
                folder,
                announce=partial(console.print, markup=False, highlight=False),
                settings=site and site.settings,
            )
        )
        console.print(f"ready after {time.monotonic() - began:.1f} s")
        if keep:
            console.print(f"Web UI: {stack.temporal.ui_url}/namespaces/default/workflows")
            console.print(f"pages: {stack.sign_in_url()}", soft_wrap=True)
        runs = await _run_phases(phases, samples, stack, site, console)
        exit_code = _report(runs, stack.temporal.ui_url, console, links=keep)
        if left_out is not None:
            console.print(left_out, style="yellow", markup=False, highlight=False, soft_wrap=True)
        if keep:
            console.print("the stack stays up until Ctrl-C")
            await stack.keep_working()
    return exit_code


def _report(runs: Sequence[Run], ui_url: str | None, console: Console, *, links: bool) -> int:
    console.print(demo_table(runs, ui_url, links=links, wide=console.width >= WIDE))
    for note in (note for run in runs for note in run.notes):
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    wrong = [run for run in runs if run.wrong]
    for run in wrong:
        console.print(f"[red]{run.task_id}: {run.wrong}[/red]")
    if wrong:
        console.print(f"[red]{len(wrong)} of {len(runs)} documents did not end as expected[/red]")
        return 1
    console.print(f"[green]all {len(runs)} documents ended as expected[/green]")
    return 0


async def _run_phases(
    phases: Sequence[Sequence[Sample]],
    samples: Path,
    stack: EmbeddedStack,
    site: TransferSite | None,
    console: Console,
) -> list[Run]:
    runs: list[Run] = []
    async with (
        AsyncExitStack() as opened,
        open_resources(stack.environment) as resources,
        open_queue(QueueSettings.read(stack.environment)) as queue,
        httpx.AsyncClient(
            base_url=stack.gateway_url,
            headers={"Authorization": f"Bearer {stack.token('the demo')}"},
            timeout=TIMEOUT,
        ) as api,
    ):
        client = await connect(stack.settings["TEMPORAL_ADDRESS"])
        imports = ImportRuns(client, stack.environment)
        clients = await opened.enter_async_context(open_aws(stack.aws))
        outside = ExternalSystems(clients, stack.installed, resources.blobs)
        if site is not None:
            await site.enrol(resources.database)
        with Live(console=console, refresh_per_second=8, transient=True) as live:
            for phase in phases:
                fresh = [prepare(sample, len(runs) + n) for n, sample in enumerate(phase, 1)]
                runs += fresh
                async with asyncio.TaskGroup() as group:
                    for run in fresh:
                        if run.sample.batch is not None:
                            group.create_task(
                                _load_batch(run, outside, client, stack, resources.database)
                            )
                            continue
                        if run.sample.scene is not None:
                            group.create_task(_process_scene(run, samples, api, stack))
                            continue
                        if run.sample.transfer is not None:
                            assert site is not None, "it is left out without"
                            carrying = FileCarrying(
                                *(api, site.stored, resources.blobs, stack.folder),
                                partial(_show, run),
                            )
                            group.create_task(_carry_file(run, samples, site, carrying))
                            continue
                        if run.sample.spreadsheet is not None:
                            group.create_task(_import_spreadsheet(run, samples, api, stack))
                            continue
                        group.create_task(_follow(run, samples, resources.blobs, queue, imports))
                    group.create_task(_draw(live, runs, fresh, stack.temporal.ui_url))
        rejected = {row.message_id for row in await resources.rejected.list()}
    for run in runs:
        run.wrong = run.wrong or _judge(run, rejected)
    return runs


def _show(run: Run, state: str) -> None:
    run.state = state


async def _follow(
    run: Run, samples: Path, blobs: Blobs, queue: ServiceBusQueue, imports: ImportRuns
) -> None:
    if run.sample.file:
        name = blob_name(run.task_id, run.sample.file)
        await blobs.upload(samples / run.sample.file, name)
    run.began = time.monotonic()
    await queue.send(json.dumps(run.body).encode(), run.workflow_id)
    if run.message is None:
        run.state = "refused"
        return
    try:
        async with asyncio.timeout(TIMEOUT):
            await _until_done(run, imports)
    except ServiceError as refused:
        run.wrong = str(refused)
    except TimeoutError:
        run.wrong = f"not done after {TIMEOUT:.0f} s; last state {run.state}"


async def _import_spreadsheet(
    run: Run, samples: Path, api: httpx.AsyncClient, stack: EmbeddedStack
) -> None:
    assert run.sample.spreadsheet is not None and run.sample.file is not None
    person = SpreadsheetPerson(api, run.sample.spreadsheet, partial(_show, run))
    run.began = time.monotonic()
    try:
        async with asyncio.timeout(TIMEOUT):
            run.uuid = await person.upload(samples / run.sample.file, stack.club.event_id)
            _, run.counts = await person.bring_to_its_end()
    except ApiError as refused:
        run.wrong = str(refused)
    except TimeoutError:
        run.wrong = f"not done after {TIMEOUT:.0f} s; last state {run.state}"
    run.seconds = time.monotonic() - run.began


async def _process_scene(
    run: Run, samples: Path, api: httpx.AsyncClient, stack: EmbeddedStack
) -> None:
    assert run.sample.scene is not None
    job = SceneJob(api, stack.settings, stack.folder, partial(_show, run))
    run.began = time.monotonic()
    try:
        async with asyncio.timeout(TIMEOUT):
            await job.make(samples / "make_scene.py", run.sample.scene)
            await job.submit(PROJECT)
            run.job_id = job.job_id
            made = await job.finish()
    except (ApiError, SceneFailed) as failed:
        run.wrong = str(failed)
        return
    except TimeoutError:
        run.wrong = f"not done after {TIMEOUT:.0f} s; last state {run.state}"
        return
    run.counts = Counts(created=made.datasets)
    run.notes = [
        f"preview of {run.document}: {made.preview.as_uri()}",
        f"STAC item of {run.document}: {made.item.as_uri()}",
    ]
    run.seconds = time.monotonic() - run.began


async def _carry_file(run: Run, samples: Path, site: TransferSite, carrying: FileCarrying) -> None:
    assert run.sample.transfer is not None and run.sample.file is not None
    content = sent((samples / run.sample.file).read_bytes(), run.sample.transfer)
    run.began = time.monotonic()
    try:
        async with asyncio.timeout(TIMEOUT):
            await site.deliver(content, run.document)
            run.transfer_id = await carrying.announce(run.document)
            carried = await carrying.finish(run.transfer_id, content, run.document)
    except (ApiError, CarryingFailed) as failed:
        run.wrong = str(failed)
        return
    except TimeoutError:
        run.wrong = f"not done after {TIMEOUT:.0f} s; last state {run.state}"
        return
    run.state, run.notes = carried.state, [carried.note]
    run.seconds = time.monotonic() - run.began


async def _load_batch(
    run: Run,
    outside: ExternalSystems,
    client: Client,
    stack: EmbeddedStack,
    database: Database,
) -> None:
    assert run.sample.batch is not None

    def show(state: str, documents: DocumentCounts | None) -> None:
        run.state = state
        if documents is not None:
            run.counts = Counts(
                created=documents.loaded, unchanged=documents.duplicate, rejected=documents.failed
            )

    run.began = time.monotonic()
    try:
        async with asyncio.timeout(TIMEOUT):
            result = await run_batch(outside, client, stack.folder / "documents", show)
        run.notes = [
            f"{name} was not loaded: {reason}"
            for name, reason in await failed_documents(database, demo_batch.KEY)
        ]
        settings = BatchSettings.read(stack.settings)
        left = await left_behind(settings, outside.clients, database, client)
    except TimeoutError:
        run.wrong = f"not done after {TIMEOUT:.0f} s; last state {run.state}"
        return
    except WorkflowFailureError as failure:
        run.wrong = f"failed: {failure.cause}"
        return
    run.wrong = judge(result, run.sample.batch, left)
    run.state = "completed" if run.wrong is None else "failed"
    run.seconds = time.monotonic() - run.began


async def _until_done(run: Run, runs: ImportRuns) -> None:
    while True:
        found = await runs.look(run.workflow_id)
        if found is not None and found.closed:
            break
        now = await runs.status(run.workflow_id)
        if now is not None:
            run.state = now.state.value
            if now.next_steps and run.sample.expect.parked:
                # Long enough for a person to see it in the table.
                await asyncio.sleep(0.5)
                answer = Answer(reason=now.reason, by="the demo")
                await runs.answer(run.workflow_id, "skip", answer)
        await asyncio.sleep(0.1)
    result = await runs.result(run.workflow_id)
    run.state, run.counts = result.state.value, result.counts
    run.seconds = time.monotonic() - run.began


def _judge(run: Run, rejected: set[str | None]) -> str | None:
    expect = run.sample.expect
    if expect.rejected_message:
        if run.workflow_id in rejected:
            run.state = "dead letter"
            return None
        return "its message was not recorded as rejected"
    if run.state != expect.state:
        return f"ended {run.state}, expected {expect.state}"
    if run.counts != expect.counts:
        return f"counts {_short(run.counts)}, expected {_short(expect.counts)}"
    return None


def _short(counts: Counts) -> Mapping[str, int]:
    return {name: value for name, value in counts.model_dump().items() if value}


async def _draw(live: Live, runs: list[Run], fresh: list[Run], ui_url: str | None) -> None:
    while True:
        live.update(demo_table(runs, ui_url, links=False))
        if all(run.seconds is not None or run.wrong or run.state == "refused" for run in fresh):
            return
        await asyncio.sleep(0.1)
