"""The story, told once: five chapters, and what is true at the end of each.

A teller does what a person does at their door. The end is read where docflow keeps it: in the
tables, in the blob store and in the folders of partners. It is the same whoever has told it.
"""

import gzip
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Table, select

from adapters.database.models.base import metadata
from adapters.database.models.batches import documents
from adapters.database.models.imports import import_tasks
from adapters.database.models.jobs import jobs, tasks
from adapters.database.models.spreadsheets import (
    decisions,
    event_participants,
    persons,
    spreadsheet_imports,
    spreadsheet_results,
)
from adapters.database.models.transfers import jobstatus, transfers
from adapters.database.runs import SqlRuns
from adapters.files.documents import FileDocuments
from tests.story.site import INBOX, SAMPLES, STORE, Cast, Site
from tests.story.tellers import Teller
from tests.support.waiting import eventually
from workers.shared.services.timeline import TimelineEntry, timeline_of
from workflows.batches.loads import DocumentState
from workflows.batches.names import BatchKey
from workflows.transfers.receipts import Receipt

End = Mapping[str, Any]
Chapter = Callable[[Site, Cast, Teller], Awaitable[End]]
PATIENCE: Final = 120.0
_MEANINGS: Final = {"Elite": "Senior (18+)", "Golden age": "Masters (40+)"}
_CATEGORY: Final = "EVENT_CATEGORY_NAME"
_LISTS: Final = ("bolts", "nuts")


async def imports_with_problems(site: Site, cast: Cast, teller: Teller) -> End:
    """A document goes in but for five rows, which come back in a report."""
    message = {"document_type": "equipment", "project_id": cast.name, "task_id": "first"}
    run = await teller.send_document(SAMPLES / "equipment.csv", message)
    await _until(teller, run, "completed")
    ended = await _run(site, run)
    told = await teller.problems(run)
    with FileDocuments().open_table(await teller.report(run)) as table:
        report = [[str(cell) for cell in row] for row in table.rows()]
    equipment = metadata.tables["equipment"]
    return {
        "told problems": told,
        "report": report,
        "rows": await _rows(site, equipment, equipment.c.project_id == cast.name, ("code", "rate")),
        "status row": await _rows(
            site,
            import_tasks,
            import_tasks.c.project_id == cast.name,
            ("state", "document_type", "created", "rejected"),
        ),
        **ended,
    }


async def upload_with_pauses_and_undo(site: Site, cast: Cast, teller: Teller) -> End:
    """A spreadsheet pauses for a column and for two values, goes in, and is taken back."""
    club = cast.club
    run = await teller.upload(SAMPLES / "registrations.xlsx", "EVENT_PARTICIPANT", club.event_id)
    await _until(teller, run, "column_mapping")
    columns = await teller.open_columns(run)
    await teller.decide_column(run, columns["Race group"], _CATEGORY)
    await teller.confirm(run, "columns")
    await _until(teller, run, "cell_mapping")
    values = await _known(lambda: teller.open_values(run))
    for value, id in sorted(values.items()):
        await teller.decide_value(run, id, _CATEGORY, _MEANINGS[value])
    await teller.confirm(run, "values")
    await _until(teller, run, "completed")
    ended = await _run(site, run)
    categories = {id: name for name, id in club.categories.items()}
    of_event = event_participants.c.event_id == club.event_id
    went_in = await _rows(site, event_participants, of_event, ("bib", "category_id"))

    await teller.undo(run)

    async def undone() -> bool:
        return await teller.undo_state(run) != "running"

    await eventually(undone, seconds=PATIENCE)
    [row] = await _rows(
        site,
        spreadsheet_imports,
        spreadsheet_imports.c.workflow_id == run,
        ("id", "created", "error", "undo_state", "undo_deleted", "undo_left_alone"),
    )
    own = spreadsheet_results.c.import_id == row[0]
    outcomes = await _rows(site, spreadsheet_results, own, ("outcome",))
    own = decisions.c.workflow_id == run
    return {
        "open columns": sorted(columns),
        "open values": sorted(values),
        "rows": sorted((bib, categories.get(category)) for bib, category in went_in),
        "outcomes": Counter(outcome for [outcome] in outcomes),
        "decisions": await _rows(site, decisions, own, ("kind", "subject", "decision", "by")),
        "rows after undo": await _rows(site, event_participants, of_event, ("bib",)),
        "people after undo": await _rows(
            site, persons, persons.c.organisation_id == club.organisation_id, ("last_name",)
        ),
        "status row": row[1:],
        "undo": await teller.undo_state(run),
        **ended,
    }


async def batch_with_redrive(site: Site, cast: Cast, teller: Teller) -> End:
    """Two documents of a batch cannot be read: tried again in vain, then mended and loaded."""
    key, case = BatchKey(case_id=cast.case, batch_id=1), cast.case
    poison = [each for each in site.samples if each.ends is DocumentState.FAILED]
    own = documents.c.case_id == case
    states = ("filename", "state")

    async def loaded() -> End:
        await _reach(teller, case, "ending")
        await teller.end_batch(case)
        await _reach(teller, case, "done")
        ended = await _run(site, key.workflow_id, whole=False)
        return {
            "documents": await _rows(site, documents, own, states),
            "failed": await teller.failed_messages(case),
            "resources": await teller.resources(case),
            "left in the cloud": await site.left_of(key),
            **ended,
        }

    await teller.start_batch(case)
    await _reach(teller, case, "loading")
    for document in (*site.samples[:2], *poison):
        await site.outside.send(document, key)
    await teller.finish_batch(case)
    at_first = await loaded()

    await teller.redrive_batch(case, with_failed=False)
    await _reach(teller, case, "draining", "ending")
    in_vain = await loaded()

    for number, document in enumerate(poison):
        whole = cast.folder / f"whole-{number}.txt"
        whole.write_text(f"The whole text of {cast.name}, {number}.")
        name = f"batches/incoming/{case}/{document.path.name}"
        await site.blobs.upload(whole, name)
    await teller.redrive_batch(case, with_failed=True)
    await _reach(teller, case, "draining", "ending")
    return {"at first": at_first, "in vain": in_vain, "at last": await loaded()}


async def job_with_restart(site: Site, cast: Cast, teller: Teller) -> End:
    """A task of the second stage fails; its cause is mended, and good tasks are kept."""
    prices = cast.folder / "prices"
    prices.write_text("bolts=2\n")
    order = {"lists": list(_LISTS), "prices": str(prices)}
    run = await teller.start_job("count_parts", order, cast.name)
    await _until(teller, run, "failed")
    prices.write_text("bolts=200\nnuts=3\n")
    await teller.restart_job(run)
    await _until(teller, run, "completed")
    ended = await _run(site, run)
    own = jobs.c.job_id == run.removeprefix("job/")
    done = ("attempt", "stage", "task_index", "status", "kept")
    return {
        "job": await _rows(site, jobs, own, ("status", "attempt", "stage", "result_data")),
        "tasks": await _rows(site, tasks, tasks.c.parent_job_id == run.removeprefix("job/"), done),
        **ended,
    }


async def transfer_parked_and_answered(site: Site, cast: Cast, teller: Teller) -> End:
    """A file is announced before it is there: its transfer waits for a person."""
    event = {
        "specversion": "1.0",
        "id": "1",
        "source": cast.name,
        "type": "Succeeded",
        "subject": "File Upload",
        "time": "2026-03-01T10:00:00Z",
        "data": {"accountId": cast.name, "path": "equipment.csv"},
    }
    run = await teller.send_event(event)
    row = (transfers.c.source == cast.name, ("transfer_id", "status", "reason", "receipt", "file"))

    async def is_parked() -> bool:
        found = await SqlRuns(site.database).of([f"{run}/job"])
        return any(each.needs_attention for each in found.values())

    await eventually(is_parked, seconds=PATIENCE)
    parked = await _run(site, f"{run}/job", until=("state", "waits for a person"))
    content = (SAMPLES / "equipment.csv").read_bytes()
    (site.partners / INBOX / cast.name / "equipment.csv").write_bytes(content)
    await teller.retry(run)
    await _until(teller, run, "succeeded")
    ended = await _run(site, f"{run}/job")
    [(id, status, reason, receipt, file)] = await _rows(site, transfers, *row)
    blob = cast.folder / "receipt.json"
    await site.blobs.download(json.loads(receipt)["name"], blob)
    steps = Receipt.model_validate_json(blob.read_bytes()).steps
    target = site.partners / STORE / cast.name
    return {
        "parked": parked,
        "row": (status, reason, file),
        "trail": [
            each[1:]
            for each in await _rows(
                site, jobstatus, jobstatus.c.transfer_id == id, ("at", "status", "queue", "by")
            )
        ],
        "receipt": [(each.action, each.outcome, len(each.files)) for each in steps],
        "target": {
            path.name: gzip.decompress(path.read_bytes()) == content for path in target.iterdir()
        },
        **ended,
    }


CHAPTERS: Final[Mapping[str, Chapter]] = {
    "import": imports_with_problems,
    "upload": upload_with_pauses_and_undo,
    "batch": batch_with_redrive,
    "job": job_with_restart,
    "transfer": transfer_parked_and_answered,
}


async def _until(teller: Teller, run: str, state: str) -> None:
    """Look at a run, by the teller's own means, until it is in a state."""

    async def there() -> bool:
        return await teller.state(run) == state

    await eventually(there, seconds=PATIENCE)


async def _reach(teller: Teller, case: int, *phases: str) -> None:
    async def there() -> bool:
        return await teller.phase(case) in phases

    # Each look is a query, and four look at once.
    await eventually(there, seconds=PATIENCE, pause=0.4)


async def _known(ask: Callable[[], Awaitable[Mapping[str, int]]]) -> Mapping[str, int]:
    """What is asked for, once there is any of it."""
    found: Mapping[str, int] = {}

    async def is_there() -> bool:
        nonlocal found
        found = await ask()
        return bool(found)

    await eventually(is_there, seconds=PATIENCE)
    return found


async def _rows(
    site: Site, table: Table, where: Any, columns: Sequence[str]
) -> Sequence[Sequence[Any]]:
    wanted = [table.c[name] for name in columns]
    async with site.database.reading() as connection:
        found = await connection.execute(select(*wanted).where(where).order_by(*wanted))
        return [tuple(row) for row in found]


async def _run(
    site: Site, run: str, *, until: tuple[str, str] = ("ended", ""), whole: bool = True
) -> End:
    """The row of a run, and what its timeline tells once it tells of an event.

    A row says that a run waits before its history does.

    Steps are told of by kind alone: a notice is one, and is not sent to who has answered already.

    Args:
        site: Where it is.
        run: Workflow id.
        until: Kind and text of that event; without a text, any of the kind.
        whole: How often it passed which state is the same each time.
    """
    entries: Sequence[TimelineEntry] = ()

    async def is_told() -> bool:
        nonlocal entries
        entries = await timeline_of(site.client, run)
        event, text = until
        return any(each.event == event and text in ("", each.text) for each in entries)

    await eventually(is_told, seconds=PATIENCE)
    found = (await SqlRuns(site.database).of([run]))[run]
    told = {
        (each.event, each.text.replace(run, "RUN"), each.by or "")
        if whole and each.event != "step"
        else (each.event, "", "")
        for each in entries
    }
    return {
        "state": (found.state.value, found.own_state),
        "needs attention": found.needs_attention,
        "run": (found.pipeline, found.kind, found.title, found.owner),
        "counts": found.counts,
        "timeline": sorted(told),
    }
