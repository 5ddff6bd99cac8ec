"""Random lives of cases and documents: databases against a model, every call once or twice."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from activities.batches.store import SqlBatchStore
from adapters.database.engine import open_database
from adapters.ports.documents import Attached, Extracted
from tests.support.batches.load_model import LoadModel
from tests.support.batches.model import BatchModel
from tests.support.batches.tables import SqlBatchTables, source
from tests.support.chaos import examples
from workflows.batches.events import (
    BatchEndFinished,
    CancelMode,
    ImportCancelled,
    JobFinished,
    JobStarted,
    RedriveRequested,
)
from workflows.batches.loads import (
    STEPS,
    AttachedFile,
    DocumentAttachments,
    DocumentEvent,
    DocumentProcessed,
    DocumentRelations,
    LoadStep,
    Relation,
    RelationKind,
)
from workflows.batches.names import BatchKey, LoaderStatus, Timings
from workflows.batches.runs import Closing

BATCHES = (1, 2, 3)
DOCUMENTS = ("a", "b", "c")
FINAL = [status for status in LoaderStatus if status.terminal]


class ModelTables:
    """What the tables shall hold."""

    def __init__(self) -> None:
        self.loads = LoadModel()
        self.batches = BatchModel(self.loads)

    async def tags(self, case: int) -> Sequence[tuple[str, str]]:
        return sorted(
            (id, tag)
            for (of, id), tags in self.loads.tags.items()
            if of == case
            for tag in tags.values()
        )

    async def relations(self, case: int) -> Sequence[tuple[str, str, RelationKind]]:
        return sorted(row[1:] for row in self.loads.relations if row[0] == case)

    async def attachments(self, case: int) -> Sequence[tuple[str, str, str]]:
        return sorted(
            (id, name, file.filename)
            for (of, id), files in self.loads.attachments.items()
            if of == case
            for name, file in files.items()
        )


Tables = SqlBatchTables | ModelTables
Call = Callable[[Tables, int], Awaitable[Any]]
"""Something that is done to the tables of a case; what it answers."""
Told = tuple[Call, bool]
"""And whether a database, unlike the model, is called twice: a worker died before it answered."""


def _key(case: int, batch: int) -> BatchKey:
    return BatchKey(case_id=case, batch_id=batch)


@st.composite
def _note(draw: st.DrawFn) -> Told:
    kinds: list[Callable[..., Any]] = [
        JobStarted,
        lambda **key: JobStarted(**key, timings=Timings(poll=7)),
        JobFinished,
        BatchEndFinished,
        RedriveRequested,
        *(lambda mode=mode, **key: ImportCancelled(**key, mode=mode) for mode in CancelMode),
    ]
    event = st.tuples(st.sampled_from(kinds), st.sampled_from(BATCHES))
    events = draw(st.lists(event, max_size=5))

    async def note(tables: Tables, case: int) -> None:
        made = [kind(case_id=case, batch_id=batch) for kind, batch in events]
        await tables.batches.note(case, made)

    # Of events that contradict each other, the first would meet what the last has left.
    return note, len(events) == 1 and draw(st.booleans())


@st.composite
def _claim(draw: st.DrawFn) -> Told:
    batch, orphans = draw(st.sampled_from(BATCHES)), draw(st.sets(st.sampled_from(BATCHES)))

    async def claim(tables: Tables, case: int) -> bool:
        return await tables.batches.claim(_key(case, batch), sorted(orphans - {batch}))

    return claim, draw(st.booleans())


@st.composite
def _close(draw: st.DrawFn) -> Told:
    batch, status = draw(st.sampled_from(BATCHES)), draw(st.sampled_from(FINAL))
    dead, only, unbuilt = draw(st.integers(0, 1)), draw(st.booleans()), draw(st.booleans())

    async def close(tables: Tables, case: int) -> None:
        await tables.batches.close(
            Closing(
                key=_key(case, batch),
                status=status,
                reason="so",
                dead_letters=dead,
                only_processing=only,
                unbuilt=unbuilt,
            )
        )

    return close, draw(st.booleans())


@st.composite
def _small(draw: st.DrawFn) -> Told:
    batch, final = draw(st.sampled_from(BATCHES)), draw(st.booleans())
    calls: list[Callable[[SqlBatchStore | BatchModel, BatchKey], Awaitable[Any]]] = [
        lambda store, key: store.expect([key]),
        lambda store, key: store.skip(key, "stuck"),
        lambda store, key: store.start_pass(key, 1, final),
        lambda store, key: store.announced(key),
        lambda store, key: store.set_concurrency(key.case_id, 2 + final),
    ]
    call = draw(st.sampled_from(calls))

    async def small(tables: Tables, case: int) -> None:
        await call(tables.batches, _key(case, batch))

    return small, draw(st.booleans())


async def _batches(tables: Tables, case: int) -> object:
    """Everything that stands in the tables of a case's batches, without its times."""
    store = tables.batches
    line = (await store.note(case, [])).batches
    found: list[object] = [one.model_dump(exclude={"since"}) for one in line]
    for batch in BATCHES:
        key = _key(case, batch)
        facts, view = await store.facts(key), await store.get(key)
        if facts is None or view is None:
            found.append((facts, view))
            continue
        found.append((view.status, view.reason, view.dead_letters, await store.is_final_pass(key)))
        found.append((facts.job_finished, facts.end_finished, facts.concurrency))
        found.append(([other for other, _ in facts.processing], facts.unannounced))
    return found


def _event(kind: type[Any], case: int, batch: int, document: str) -> DocumentEvent:
    where = {"case_id": case, "batch_id": batch, "document_id": document}
    if kind is DocumentProcessed:
        return DocumentProcessed.model_validate({**where, "blob_name": f"in/{document}"})
    if kind is DocumentRelations:
        return DocumentRelations.model_validate({**where, "relations": [{"related_id": "z"}]})
    file = AttachedFile(blob_name="in/x", filename="x.txt")
    return DocumentAttachments.model_validate({**where, "attachments": [file]})


async def _take(tables: Tables, event: DocumentEvent, step: LoadStep, content: str) -> Any:
    store = tables.loads
    if isinstance(event, DocumentRelations):
        return await store.save_relations(event, event.relations)
    if isinstance(event, DocumentAttachments):
        return await store.save_attachments(event, [Attached("x.txt", source("e"))])
    match step:
        case LoadStep.DEDUPE:
            return await store.save_source(event, source(content))
        case LoadStep.EXTRACT:
            thread = [f"<{event.document_id}>", f"<{content}>", "<a>"]
            return await store.save_text(event, Extracted("text/plain", content, thread=thread))
        case LoadStep.TAGS:
            return await store.save_tags(event, [f"Tag {event.document_id}", "tag  A"])
        case LoadStep.RELATIONS:
            return await store.save_relations(event, [Relation(related_id=content)])
        case LoadStep.ATTACHMENTS:
            return await store.save_attachments(event, [Attached("y.txt", source(content))])


@st.composite
def _load(draw: st.DrawFn) -> Told:
    """A document goes through its steps, or as far as a crash lets it, or fails."""
    kind = draw(st.sampled_from([DocumentProcessed] * 3 + [DocumentRelations, DocumentAttachments]))
    batch, name = draw(st.sampled_from(BATCHES[:2])), draw(st.sampled_from(DOCUMENTS))
    content = draw(st.sampled_from("ab"))
    most, fails, twice = draw(st.integers(0, 6)), draw(st.booleans()), draw(st.booleans())

    async def load(tables: Tables, case: int) -> list[object]:
        event = _event(kind, case, batch, name)
        answers: list[object] = []
        times = 2 if twice and isinstance(tables, SqlBatchTables) else 1
        for step in STEPS[event.event_type][:most]:
            answers += [[await _take(tables, event, step, content) for _ in range(times)][-1]]
            if (await tables.loads.facts(event)).duplicate_of is not None:
                return answers
        if fails and most < 6:
            for _ in range(times):
                await tables.loads.fail(event, "no")
        return answers

    return load, False


@st.composite
def _truncate(draw: st.DrawFn) -> Told:
    batch = draw(st.sampled_from(BATCHES[:2]))

    async def truncate(tables: Tables, case: int) -> int:
        return await tables.batches.truncate(_key(case, batch))

    return truncate, False


async def _documents(tables: Tables, case: int) -> object:
    """Everything that stands in the tables of a case's documents."""
    found: list[object] = [await tables.tags(case), await tables.relations(case)]
    found.append(await tables.attachments(case))
    for batch, name in itertools.product(BATCHES[:2], DOCUMENTS):
        for kind in (DocumentProcessed, DocumentRelations, DocumentAttachments):
            found.append(await tables.loads.facts(_event(kind, case, batch, name)))
        found.append(await tables.batches.counts(_key(case, batch)))
    return found


@pytest.fixture
def runner() -> Generator[asyncio.Runner]:
    """One event loop for all examples of a test: connections belong to the loop they began on."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def sql(database_url: str, runner: asyncio.Runner) -> Generator[SqlBatchTables]:
    database = open_database(database_url)
    yield SqlBatchTables(database)
    runner.run(database.close())


@pytest.fixture
def cases() -> Iterator[int]:
    """Every example has a case of its own."""
    return itertools.count(1)


SETTINGS = settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


async def _agree(
    sql: SqlBatchTables,
    case: int,
    life: Sequence[Told],
    look: Callable[[Tables, int], Awaitable[object]],
) -> None:
    model = ModelTables()
    for call, twice in life:
        expected = await call(model, case)
        for _ in range(1 + twice):
            assert await call(sql, case) == expected
        assert await look(sql, case) == await look(model, case)


@SETTINGS
@given(life=st.lists(st.one_of(_note(), _note(), _claim(), _close(), _small()), max_size=12))
def check_cases(
    sql: SqlBatchTables, runner: asyncio.Runner, cases: Iterator[int], life: list[Told]
) -> None:
    runner.run(_agree(sql, next(cases), life, _batches))


@SETTINGS
@given(life=st.lists(st.one_of(_load(), _load(), _load(), _truncate()), max_size=10))
def check_documents(
    sql: SqlBatchTables, runner: asyncio.Runner, cases: Iterator[int], life: list[Told]
) -> None:
    runner.run(_agree(sql, next(cases), life, _documents))


@pytest.mark.chaos(alone=True)
def test_cases_follow_the_model(
    sql: SqlBatchTables, runner: asyncio.Runner, cases: Iterator[int]
) -> None:
    check_cases(sql, runner, cases)


@pytest.mark.chaos(alone=True)
def test_documents_follow_the_model(
    sql: SqlBatchTables, runner: asyncio.Runner, cases: Iterator[int]
) -> None:
    check_documents(sql, runner, cases)
