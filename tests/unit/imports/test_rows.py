"""Rows of a document, from blob to table, whatever happens on the way."""

import asyncio
import hashlib
import threading
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.imports.rows import INLINE_BYTES, LoadProgress, RowImports
from activities.shared import failures
from adapters.files.documents import FileDocuments
from adapters.ports.errors import Unavailable
from tests.support.imports.activities import (
    KEY,
    ActivityPorts,
    Killed,
    environment,
    message_of,
    work_of,
)
from tests.support.imports.documents import workbook
from tests.support.imports.loads import GOOD, MIXED, codes, corrected, load
from workflows.imports.runs import PROBLEMS_IN_RESULT, Counts, HandlerOutcome, LoadMark
from workflows.shared.cells import RejectedRow


@pytest.fixture
def ports(tmp_path: Path) -> ActivityPorts:
    return ActivityPorts(tmp_path)


async def test_a_clean_small_document_is_one_transaction(ports: ActivityPorts) -> None:
    outcome = await load(ports, GOOD, chunk_rows=100)
    assert outcome.counts == Counts(created=2)
    assert outcome.report is None
    assert outcome.note == "Columns not used: 'Colour' (2 values)."
    assert ports.store.tables["equipment"]["P1", "E-1"] == {
        "project_id": "P1",
        "code": "E-1",
        "rate": Decimal("10.5"),
    }
    assert ports.store.calls == ["mark", "write"]
    assert await load(ports, None, chunk_rows=100) == outcome


@pytest.mark.parametrize(
    "fields", [{}, {"strategy": "append", "idempotency_key": "k"}, {"all_or_nothing": True}]
)
async def test_a_load_that_is_handed_over_continues_behind_its_last_chunk(
    ports: ActivityPorts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    (tmp_path / "whole").mkdir()
    whole = ActivityPorts(tmp_path / "whole")
    expected = await load(whole, GOOD + b"E-3,5,blue\n", chunk_rows=1, **fields)
    monkeypatch.setattr(failures, "LOCAL_SECONDS", 0.0)
    outcome = await load(ports, GOOD + b"E-3,5,blue\n", chunk_rows=1, is_local=True, **fields)
    assert outcome == HandlerOutcome(unfinished=True)
    assert (await ports.store.mark(KEY)).cursor == 1
    monkeypatch.undo()
    assert await load(ports, None, chunk_rows=1, **fields) == expected
    assert codes(ports) == codes(whole) == ["E-1", "E-2", "E-3"]


async def test_good_rows_are_loaded_and_bad_ones_are_reported(ports: ActivityPorts) -> None:
    outcome = await load(ports, MIXED)
    assert codes(ports) == ["E-1", "E-3", "E-5"]
    assert outcome.counts == Counts(created=3, rejected=3)
    assert [(p.line, p.column, p.value) for p in outcome.problems] == [
        (3, "Rate", "abc"),
        (5, "Code", "E-1"),
        (6, "Rate", "-1"),
    ]
    assert outcome.report is not None and outcome.report.name == "reports/P1/T1.xlsx"
    header, *rows = await ports.read(outcome.report.name)
    assert header == ["what is wrong", "Code", "Rate"]
    assert [row[1:] for row in rows] == [["E-2", "abc"], ["E-1", "3"], ["E-4", "-1"]]
    assert "same code as line 2" in rows[1][0]


async def test_the_corrected_report_finds_its_lines(ports: ActivityPorts) -> None:
    take_off = b"Drawing,Commodity,Qty\nD-1,P,1\nD-1,P,two\nD-1,P,3\n"
    fields = {"type": "mto", "service_id": "S1"}
    outcome = await load(ports, take_off, **fields)
    assert outcome.report is not None
    header, (wrong, *cells) = await ports.read(outcome.report.name)
    corrected = [str(cell) for cell in (wrong, *cells)]
    corrected[header.index("Qty")] = "2"
    text = ";".join(header) + "\n" + ";".join(f'"{cell}"' for cell in corrected) + "\n"
    outcome = await load(ports, text.encode(), task_id="T2", **fields)
    assert outcome.counts == Counts(created=1)
    lines = sorted(ports.store.tables["mto_lines"].values(), key=lambda row: row["sequence"])
    assert [(row["sequence"], row["quantity"]) for row in lines] == [
        (1, Decimal(1)),
        (2, Decimal(2)),
        (3, Decimal(3)),
    ]


async def test_many_problems_travel_as_a_few(ports: ActivityPorts) -> None:
    rows = "".join(f"E-{i},bad\n" for i in range(50))
    outcome = await load(ports, f"Code,Rate\n{rows}".encode())
    assert outcome.counts == Counts(rejected=50)
    assert outcome.problem_count == 50
    assert len(outcome.problems) == PROBLEMS_IN_RESULT
    assert outcome.report is not None
    assert len(await ports.read(outcome.report.name)) == 51


async def test_rows_that_the_store_refuses_are_reported_with_their_cells(
    ports: ActivityPorts,
) -> None:
    await load(ports, b"Code\nE-1\n")
    outcome = await load(ports, GOOD, task_id="T2", strategy="update_only", chunk_rows=100)
    assert outcome.counts == Counts(updated=1, rejected=1)
    assert outcome.report is not None
    assert (await ports.read(outcome.report.name))[1][1:] == ["E-2", "20", "blue"]


async def test_a_document_that_was_replaced_meanwhile_is_not_mixed_with_the_old_one(
    ports: ActivityPorts,
) -> None:
    source = await ports.put("in/file", GOOD)
    await ports.put("in/file", MIXED)
    activities = RowImports(ports.store, ports.blobs, ports.documents, ports.reports, ports.scratch)
    work = work_of(message_of("equipment", blob_name="in/file"), source)
    with pytest.raises(ApplicationError, match="was replaced while its import was running"):
        await environment().run(activities.load_rows, work)
    assert codes(ports) == []


SCENARIOS: list[dict[str, Any]] = [
    {},
    {"strategy": "replace"},
    {"strategy": "append", "idempotency_key": "K"},
    {"all_or_nothing": True},
]


def kill_at(step: int) -> Callable[[str], None]:
    left = step

    def die(name: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed(name)

    return die


@pytest.mark.parametrize("fields", SCENARIOS, ids=str)
@pytest.mark.parametrize("moment", ["before_call", "after_call"])
async def test_a_worker_killed_at_any_step_leaves_no_trace(
    tmp_path: Path, fields: dict[str, Any], moment: str
) -> None:
    async def run(ports: ActivityPorts) -> HandlerOutcome:
        return await load(ports, MIXED, **fields)

    (tmp_path / "calm").mkdir()
    calm = ActivityPorts(tmp_path / "calm")
    expected = await run(calm)
    for step in range(len(calm.store.calls)):
        folder = tmp_path / f"killed-{step}"
        folder.mkdir()
        ports = ActivityPorts(folder)
        setattr(ports.store, moment, kill_at(step))
        with pytest.raises(Killed):
            await run(ports)
        setattr(ports.store, moment, lambda name: None)
        outcome = await run(ports)
        assert outcome.counts == expected.counts
        assert outcome.problems == expected.problems
        assert outcome.note == expected.note
        assert ports.store.tables == calm.store.tables
        assert list(ports.scratch.iterdir()) == []


@pytest.mark.parametrize(
    "mark",
    [
        LoadMark(cursor=1, counts=Counts(created=1)),
        LoadMark(cursor=1, counts=Counts(created=1), header=("other work", "Code")),
        LoadMark(cursor=2, counts=Counts(created=2), header=("other work", "Code"), finished=True),
    ],
)
async def test_progress_of_other_work_does_not_count(ports: ActivityPorts, mark: LoadMark) -> None:
    ports.store.marks[KEY] = mark
    outcome = await load(ports, GOOD)
    assert outcome.counts == Counts(created=2)
    assert codes(ports) == ["E-1", "E-2"]


async def test_big_documents_are_read_beside_the_event_loop(ports: ActivityPorts) -> None:
    rows = "".join(f"E-{i:06d},{i}.5,{'x' * 40}\n" for i in range(4_000))
    assert len(rows) > INLINE_BYTES
    threads: set[threading.Thread] = set()

    class Watched(FileDocuments):
        def open_table(self, path: Path, **named: Any) -> Any:
            threads.add(threading.current_thread())
            return super().open_table(path, **named)

    ports.documents = Watched()
    content = f"Code,Rate,Description\n{rows}".encode()
    outcome = await load(ports, content, chunk_rows=1_000)
    assert outcome.counts == Counts(created=4_000)
    assert ports.store.calls.count("write") == 4
    assert threading.current_thread() not in threads
    assert not any(thread.is_alive() for thread in threads)


async def test_heartbeats_report_the_progress_of_the_load(ports: ActivityPorts) -> None:
    beats: list[LoadProgress] = []

    def fail(name: str) -> None:
        if name == "finish":
            raise Unavailable("the database went away")

    ports.store.before_call = fail
    await ports.put("in/file", MIXED)
    activities = RowImports(
        ports.store, ports.blobs, ports.documents, ports.reports, ports.scratch, 4
    )
    env = environment(heartbeat_timeout=timedelta(hours=1), is_local=False)
    env.on_heartbeat = lambda *details: beats.extend(details)
    work = work_of(message_of("equipment", blob_name="in/file"))
    with pytest.raises(ApplicationError, match="the database went away"):
        await env.run(activities.load_rows, work)
    assert beats == [LoadProgress(rows=6, counts=Counts(created=3, rejected=3))]


async def test_cancelled_between_chunks_keeps_what_is_committed(ports: ActivityPorts) -> None:
    rows = "".join(f"E-{i:06d},{i}.5,{'x' * 40}\n" for i in range(4_000))
    await ports.put("in/file", f"Code,Rate,Description\n{rows}".encode())
    activities = RowImports(
        ports.store, ports.blobs, ports.documents, ports.reports, ports.scratch, 1_000
    )
    env = environment()

    def cancel(name: str) -> None:
        if ports.store.calls.count("write") == 2:
            env.cancel()

    ports.store.after_call = cancel
    work = work_of(message_of("equipment", blob_name="in/file"))
    with pytest.raises(asyncio.CancelledError):
        await env.run(activities.load_rows, work)
    mark = await ports.store.mark(KEY)
    assert mark.cursor == mark.counts.created == len(codes(ports))
    assert mark.cursor in (2_000, 3_000)
    assert list(ports.scratch.iterdir()) == []


async def test_a_report_that_fails_half_way_ends_cleanly(ports: ActivityPorts) -> None:
    class Failing:
        def write(self, target: Path, header: Any, rows: Any, **more: Any) -> None:
            first: RejectedRow = next(rows)
            raise OSError(f"disk full at line {first.line}")

    await ports.put("in/file", MIXED)
    activities = RowImports(ports.store, ports.blobs, ports.documents, Failing(), ports.scratch, 2)
    work = work_of(message_of("equipment", blob_name="in/file"))
    with pytest.raises(ApplicationError, match="unexpected OSError: disk full at line 3"):
        await environment().run(activities.load_rows, work)
    assert (await load(ports, None)).counts == Counts(created=3, rejected=3)


async def test_crew_members_of_several_chunks_go_in_together(ports: ActivityPorts) -> None:
    rows = b"Employee No,From\n1,2026-01-01\n2,2026-01-01\n1,2026-03-01\n"
    outcome = await load(ports, rows, type="crew_member", chunk_rows=1)
    assert outcome.counts == Counts(created=3)
    assert (ports.store.calls.count("stage"), ports.store.calls.count("swap")) == (3, 1)
    assert "write" not in ports.store.calls


async def test_a_small_list_of_crew_members_is_one_transaction(ports: ActivityPorts) -> None:
    await load(ports, b"Employee No,From\n1,2026-01-01\n", type="crew_member", chunk_rows=10)
    assert ports.store.calls == ["mark", "write"]


async def test_a_load_of_an_earlier_release_is_the_same_work(ports: ActivityPorts) -> None:
    """The fields of its message, as it wrote them, name the work."""
    source = await ports.put("in/file", b"Code\nE-1\n")
    activities = RowImports(ports.store, ports.blobs, ports.documents, ports.reports, ports.scratch)
    work = work_of(message_of("equipment", blob_name="in/file"), source)
    await environment().run(activities.load_rows, work)
    content = (
        '{"task_id":"T1","project_id":"P1","blob_name":"in/file","filename":null,"encoding":null,'
        '"strategy":"merge","idempotency_key":null,"all_or_nothing":false,"sheet":null,'
        '"document_type":"equipment"}\n"1"'
    )
    identity = hashlib.sha256(content.encode()).hexdigest()
    assert (await ports.store.mark(KEY)).header[0] == identity


async def test_a_row_that_lost_is_known_after_another_program_wrote_it(
    ports: ActivityPorts,
) -> None:
    first = await load(ports, b"Code,Rate,Status\nE-1,1.5,new\nE-1,9,old\nE-1,8,older\nE-2,abc,x\n")
    assert first.report is not None
    header, *rows = await ports.read(first.report.name)
    lines = [";".join(map(str, header)), *(";".join(map(str, row)) for row in rows[:2])]
    as_text = "\n".join(lines).replace(";9;", ";9.00;") + "\nmine;E-3;1.5;z\n"
    again = await load(ports, as_text.encode(), task_id="T2")
    assert again.counts == Counts(created=1, rejected=2)
    assert ports.store.tables["equipment"]["P1", "E-1"]["rate"] == Decimal("1.5")


async def test_doubtful_dates_come_back_as_they_were_and_are_refused_again(
    ports: ActivityPorts,
) -> None:
    rows = [["Badge", "From"], ["1", date(2025, 5, 1)], ["2", "01/13/2025"], ["3", "x"]]
    file = workbook(ports.folder / "us.xlsx", {"A": rows})
    first = await load(ports, file.read_bytes(), type="crew_member")
    assert first.counts == Counts(created=1, rejected=2)
    again = await load(
        ports, await corrected(ports, first, {"x": "2025-01-07"}), task_id="T2", type="crew_member"
    )
    assert again.counts == Counts(created=1, rejected=1)
    assert again.problems[0].reason.startswith("came back as it was: may have day and month")
    day_number = "45778"
    third = await load(
        ports,
        await corrected(ports, again, {day_number: "2025-01-05"}),
        task_id="T3",
        type="crew_member",
    )
    assert third.counts == Counts(created=1)
