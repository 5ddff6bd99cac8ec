"""A minute without something that docflow itself needs, under 120 imports."""

import asyncio
import contextlib
import subprocess
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from tests.crash.documents import Document
from tests.crash.harness import WORKER_WITH_BRIDGE, System, running_system, until
from tests.crash.outcomes import assert_nothing_left
from workflows.imports.messages import Strategy

pytestmark = pytest.mark.chaos(alone=True)

IMPORTS: Final = 120
OUTAGE_SECONDS: Final = 60
EXTRA_EVENTS: Final = 10
SCRATCH_BYTES: Final = 16 << 20
ROWS: Final = 50
WAIT: Final = "dependencies.wait"
SCHEDULED: Final = EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED
COMMANDS: Final = (
    EventType.EVENT_TYPE_MARKER_RECORDED,
    EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
    EventType.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED,
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
)
"""What a workflow task leaves behind it in the history."""


Toggle = Callable[[], None]


@dataclass(frozen=True)
class Setup:
    """Where something runs that can go away."""

    goes: Toggle
    returns: Toggle
    settings: Mapping[str, str] | None = None


Open = Callable[[Path], AbstractAsyncContextManager[Setup]]


@asynccontextmanager
async def unmounted_blobs(folder: Path) -> AsyncGenerator[Setup]:
    """The folder of all documents is gone, as one of another machine that is not mounted."""
    blobs, elsewhere = folder / "blobs" / "imports", folder / "elsewhere"
    blobs.mkdir(parents=True)
    yield Setup(lambda: void(blobs.rename(elsewhere)), lambda: void(elsewhere.rename(blobs)))


@asynccontextmanager
async def full_disk(folder: Path) -> AsyncGenerator[Setup]:
    """The scratch folder is a small disk of its own, which another program keeps full."""
    disk = folder / "disk"
    disk.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={SCRATCH_BYTES}", "docflow-test", str(disk)]
    await asyncio.to_thread(subprocess.run, ["mount", *options], check=True)
    other, stopped = disk / "other", threading.Event()

    def fill() -> None:
        with other.open("wb", buffering=0) as file:
            # What an import that ends gives back is taken at once.
            while not stopped.wait(0.01):
                with contextlib.suppress(OSError):
                    while file.write(bytes(4096)):
                        pass

    program = threading.Thread(target=fill)

    def end() -> None:
        stopped.set()
        if program.ident is not None:
            program.join()
        other.unlink(missing_ok=True)

    try:
        yield Setup(program.start, end, settings={"DOCFLOW_SCRATCH": str(disk)})
    finally:
        end()
        await asyncio.to_thread(subprocess.run, ["umount", str(disk)], check=True)


def void(_value: object) -> None:
    """Do nothing with a result."""


@pytest.mark.parametrize(
    "open_setup",
    [
        pytest.param(unmounted_blobs, id="blob store"),
        pytest.param(full_disk, id="scratch disk", marks=pytest.mark.root),
    ],
)
async def test_a_minute_of_outage_parks_and_loses_no_import(
    tmp_path: Path, open_setup: Open
) -> None:
    async with (
        open_setup(tmp_path) as setup,
        running_system(
            tmp_path,
            WORKER_WITH_BRIDGE,
            settings=setup.settings,
        ) as system,
    ):
        client = await system.client()
        # A small text that is merged needs no scratch disk.
        strategy = Strategy.REPLACE if open_setup is full_disk else Strategy.MERGE
        documents = [Document(f"O{n:03}", strategy, ROWS) for n in range(IMPORTS)]
        undisturbed = Document("calm", strategy, ROWS)
        await system.import_all([undisturbed])
        usual = len(await events(client, undisturbed))
        sending = asyncio.create_task(system.submit(documents))
        await until(lambda: has_begun(client), "imports are under way", within=120, every=0.2)
        if open_setup is unmounted_blobs:
            # A sender cannot upload to it either.
            await sending
        setup.goes()
        await asyncio.sleep(OUTAGE_SECONDS)
        # On a starved machine a minute may pass before an import notices.
        await until(lambda: is_noticed(client), "an import waits", every=0.2)
        setup.returns()
        await sending
        await system.ended(documents)
        await assert_none_parked_or_lost(system, client, documents, usual)
        await assert_nothing_left(system)


async def has_begun(client: Client) -> bool:
    """Whether some of the imports have been started."""
    return (await client.count_workflows("WorkflowType = 'DocumentImport'")).count > 20


async def is_noticed(client: Client) -> bool:
    """Whether some of the imports wait."""
    waiting = "WorkflowType = 'DocumentImport' AND State = 'waiting'"
    return (await client.count_workflows(waiting)).count > 0


async def events(client: Client, document: Document) -> list[object]:
    """History of an import, to its end: its row is finished before its run is."""
    handle = client.get_workflow_handle(document.message.workflow_id)
    await handle.result()
    return [event async for event in handle.fetch_history_events()]


async def assert_none_parked_or_lost(
    system: System, client: Client, documents: Sequence[Document], usual: int
) -> None:
    """Every import is complete, was never parked, and has few events more than usual."""
    waited, added = 0, 0
    for document in documents:
        handle = client.get_workflow_handle(document.message.workflow_id)
        await handle.result()
        history = await handle.fetch_history()
        # `get`: to look a missing name up in this map would turn any event into one of this kind.
        states = [
            state.data
            for event in history.events
            if (state := indexed(event).get("State")) is not None
        ]
        assert b'"parked"' not in states, document.name
        assert b'"completed"' in states, document.name
        waited += b'"waiting"' in states
        more = len(history.events) - usual - handovers(history.events)
        if more > EXTRA_EVENTS:
            print(document.name, [EventType.Name(event.event_type) for event in history.events])
        added = max(added, more)
    rows = await system.finished_tasks()
    assert {document.task_id for document in documents} <= rows
    print(f"{waited} of {IMPORTS} waited; {added} events more than the usual {usual}")
    assert waited
    assert added <= EXTRA_EVENTS


def indexed(event: HistoryEvent) -> Mapping[str, Payload]:
    """Search attributes that an event sets."""
    return event.upsert_workflow_search_attributes_event_attributes.search_attributes.indexed_fields


def handovers(events: Sequence[HistoryEvent]) -> int:
    """Events of a machine that is too busy, which come without an outage as well.

    A step that takes too long is handed over to be done remotely: three events of the activity,
    and three of the workflow task that hears of its end. A workflow task whose local steps wait for
    a free slot is prolonged by another one: three events. One that its worker did not end in time
    is given out again: three events.
    """
    remote = [
        event.activity_task_scheduled_event_attributes.activity_type.name
        for event in events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
    kinds = [event.event_type for event in events if event.event_type not in COMMANDS]
    prolonged = sum(
        pair == (EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, SCHEDULED)
        for pair in pairwise(kinds)
    )
    expired = kinds.count(EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT)
    return 6 * sum(name != WAIT for name in remote) + 3 * (prolonged + expired)
