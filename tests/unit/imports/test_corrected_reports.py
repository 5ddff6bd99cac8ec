"""A report comes back: what was corrected goes in, what was not overwrites nothing."""

import hashlib
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter
from temporalio.exceptions import ApplicationError

from activities.imports.rows import RowImports
from tests.support.imports.activities import (
    KEY,
    ActivityPorts,
    environment,
    message_of,
    work_of,
)
from tests.support.imports.documents import workbook
from workflows.imports.runs import Counts, HandlerOutcome
from workflows.shared.errors import INVALID_DOCUMENT


@pytest.fixture
def ports(tmp_path: Path) -> ActivityPorts:
    return ActivityPorts(tmp_path)


async def load(ports: ActivityPorts, content: bytes, **fields: Any) -> HandlerOutcome:
    blob = await ports.put("in/file", content)
    message = message_of(**{"document_type": "equipment", "blob_name": "in/file", **fields})
    parts = (ports.store, ports.blobs, ports.documents, ports.reports, ports.scratch)
    activities = RowImports(*parts)
    return await environment().run(activities.load_rows, work_of(message, blob))


async def load_report(
    ports: ActivityPorts, outcome: HandlerOutcome, corrections: dict[str, str], **fields: Any
) -> HandlerOutcome:
    """Send a report again, as the program writes it, with some texts corrected."""
    assert outcome.report is not None
    file = ports.folder / "corrected.xlsx"
    await ports.blobs.download(outcome.report.name, ports.folder / "report.xlsx")
    with (
        ports.documents.open_workbook(ports.folder / "report.xlsx") as book,
        xlsxwriter.Workbook(str(file)) as target,
    ):
        for each in book.sheets:
            sheet = target.add_worksheet(each.name)
            if each.hidden:
                sheet.very_hidden()
            for line, cells in book.table(each.name).rows():
                for column, cell in enumerate(cells):
                    new = corrections.get(str(cell), cell)
                    if isinstance(new, str):
                        sheet.write_string(line - 1, column, new)
                    elif new is not None:
                        sheet.write(line - 1, column, new)
    return await load(ports, file.read_bytes(), **fields)


def rates(ports: ActivityPorts) -> dict[str, Any]:
    return {key[1]: row.get("rate") for key, row in ports.store.tables["equipment"].items()}


TWICE = b"Code,Rate,Status\nE-1,1.5,new\nE-1,9,old\nE-1,8,older\nE-2,abc,x\n"


async def test_a_row_that_lost_comes_back_as_it_was_and_is_refused_again(
    ports: ActivityPorts,
) -> None:
    first = await load(ports, TWICE)
    assert first.counts == Counts(created=1, rejected=3)
    again = await load_report(ports, first, {"abc": "5"}, task_id="T2")
    assert again.counts == Counts(created=1, rejected=2)
    assert rates(ports) == {"E-1": Decimal("1.5"), "E-2": 5}
    assert again.problems[0].reason == "came back as it was: same code as line 2"
    third = await load_report(ports, again, {}, task_id="T3")
    assert third.counts == Counts(rejected=2)
    assert third.problems[0].reason == "came back as it was: same code as line 2"


async def test_a_row_that_lost_goes_in_once_it_is_corrected(ports: ActivityPorts) -> None:
    first = await load(ports, TWICE)
    again = await load_report(ports, first, {"9": "9.5"}, task_id="T2")
    assert again.counts == Counts(updated=1, rejected=2)
    assert rates(ports)["E-1"] == Decimal("9.5")


async def test_a_row_that_lost_is_known_after_another_program_wrote_it(
    ports: ActivityPorts,
) -> None:
    first = await load(ports, TWICE)
    assert first.report is not None
    header, *rows = await ports.read(first.report.name)
    lines = [";".join(map(str, header)), *(";".join(map(str, row)) for row in rows[:2])]
    as_text = "\n".join(lines).replace(";9;", ";9.00;") + "\nmine;E-3;1.5;z\n"
    again = await load(ports, as_text.encode(), task_id="T2")
    assert again.counts == Counts(created=1, rejected=2)
    assert rates(ports)["E-1"] == Decimal("1.5")


async def test_what_was_settled_about_a_column_travels_with_the_report(
    ports: ActivityPorts,
) -> None:
    prices = b'Code;Price;Currency\nA;"1,5";EUR\nB;"1,234";EUR;\nC;abc;EUR\nA;"2,345";EUR\n'
    kind = {"document_type": "material"}
    first = await load(ports, prices, **kind)
    assert first.counts == Counts(created=2, rejected=2)
    again = await load_report(ports, first, {"abc": "7,125", "2,345": "3,456"}, task_id="2", **kind)
    assert again.counts == Counts(created=1, updated=1)
    found = {key[1]: row["price"] for key, row in ports.store.tables["materials"].items()}
    expected = {"A": Decimal("3.456"), "B": Decimal("1.234"), "C": Decimal("7.125")}
    assert found == expected


async def test_what_was_open_stays_open_in_the_report(ports: ActivityPorts) -> None:
    dates = b"Employee;From\n1;03/04/2025\n2;05/06/2025\n3;31/02/2025\n"
    kind = {"document_type": "crew_member"}
    first = await load(ports, dates, **kind)
    again = await load_report(ports, first, {"31/02/2025": "28/02/2025"}, task_id="T2", **kind)
    assert again.counts == Counts(created=1, rejected=2)
    said = await load_report(ports, again, {}, task_id="T3", date_order="dmy", **kind)
    assert said.counts == Counts(created=2)


async def test_dates_with_dots_are_read_in_the_report_as_in_the_document(
    ports: ActivityPorts,
) -> None:
    dates = b"Employee;From\n1;03.04.2025\n2;03.25.2025\n3;25.03.2025\n4;31.31.2025\n"
    kind = {"document_type": "crew_member"}
    first = await load(ports, dates, **kind)
    assert first.counts == Counts(created=2, rejected=2)
    again = await load_report(ports, first, {"31.31.2025": "2025-03-31"}, task_id="T2", **kind)
    assert again.counts == Counts(created=1, rejected=1)


@pytest.mark.parametrize(
    ("share", "held"), [(1.0, None), (0.5, None), (0.4, "1 of 2 rows were rejected")]
)
async def test_more_rejected_rows_than_allowed_are_for_a_person(
    ports: ActivityPorts, share: float, held: str | None
) -> None:
    outcome = await load(ports, b"Code,Rate\nE-1,1\nE-2,x\n", max_rejected_share=share)
    assert outcome.counts == Counts(created=1, rejected=1)
    assert (outcome.held_back or "").startswith(held or "")
    assert (outcome.held_back is None) is (held is None)


async def test_a_document_of_which_every_row_is_rejected_is_for_a_person(
    ports: ActivityPorts,
) -> None:
    outcome = await load(ports, b"Code,Rate\nE-1,x\nE-2,y\n")
    assert outcome.held_back is not None
    assert outcome.held_back.startswith("all rows were rejected")
    assert outcome.report is not None


async def test_codes_that_differ_in_leading_zeros_are_asked_about_once(
    ports: ActivityPorts,
) -> None:
    await load(ports, b"Code,Rate\n00123,1\n7,1\n")
    file = b"Code,Rate\n123,2\n007,2\n8,2\n"
    with pytest.raises(ApplicationError, match="'123' on line 2 and the known '00123'") as asked:
        await load(ports, file, task_id="T2")
    assert asked.value.type == INVALID_DOCUMENT
    assert "as do 1 more" in str(asked.value)
    assert rates(ports) == {"00123": 1, "7": 1}
    reported = await load(ports, file, task_id="T2", leading_zeros="same")
    assert reported.counts == Counts(created=1, updated=2)
    assert rates(ports) == {"00123": 2, "7": 2, "8": 2}
    later = await load(ports, b"Code,Rate\n0123,3\n", task_id="T3")
    assert (later.counts, rates(ports)["00123"]) == (Counts(updated=1), 3)


async def test_codes_that_differ_in_leading_zeros_may_be_two(ports: ActivityPorts) -> None:
    await load(ports, b"Code,Rate\n00123,1\n")
    reported = await load(ports, b"Code,Rate\n123,2\n", task_id="T2", leading_zeros="distinct")
    assert reported.counts == Counts(created=1)
    assert rates(ports) == {"00123": 1, "123": 2}
    assert (await load(ports, b"Code,Rate\n0123,3\n", task_id="T3")).counts == Counts(created=1)


async def test_a_code_that_is_known_as_it_stands_is_no_question(ports: ActivityPorts) -> None:
    await load(ports, b"Code,Rate\n00123,1\n123,1\n")
    assert (await load(ports, b"Code,Rate\n123,2\n", task_id="T2")).counts == Counts(updated=1)


@pytest.mark.parametrize("other", ["00123", "0123"])
async def test_both_spellings_in_one_document_are_refused(ports: ActivityPorts, other: str) -> None:
    await load(ports, b"Code,Rate\n00123,1\n")
    both = f"Code,Rate\n123,2\n{other},3\n".encode()
    with pytest.raises(ApplicationError, match=f"holds both '123' and '{other}'"):
        await load(ports, both, task_id="T2", leading_zeros="same")


async def test_a_load_of_an_earlier_release_is_the_same_work(ports: ActivityPorts) -> None:
    """The fields of its message, as it wrote them, name the work."""
    await load(ports, b"Code\nE-1\n")
    content = (
        '{"task_id":"T1","project_id":"P1","blob_name":"in/file","filename":null,"encoding":null,'
        '"strategy":"merge","idempotency_key":null,"all_or_nothing":false,"sheet":null,'
        '"document_type":"equipment"}\n"1"'
    )
    identity = hashlib.sha256(content.encode()).hexdigest()
    assert (await ports.store.mark(KEY)).header[0] == identity


async def test_a_row_that_was_cut_in_the_wrong_places_is_refused_until_it_is_corrected(
    ports: ActivityPorts,
) -> None:
    first = await load(ports, b"Code,Status,Rate\nE-1,new,2\nE-2,old,1,5\nE-3,x,7,,\n")
    assert first.counts == Counts(created=2, rejected=1)
    assert first.problems[0].column == "column D"
    assert first.problems[0].reason.startswith("stands behind the last column of the header")
    again = await load_report(ports, first, {}, task_id="T2")
    assert again.counts == Counts(rejected=1)
    await load_report(ports, again, {"1": "1.5"}, task_id="T3")
    assert rates(ports) == {"E-1": 2, "E-2": Decimal("1.5"), "E-3": 7}


async def test_a_column_without_a_title_whose_header_has_a_field_is_named_only(
    ports: ActivityPorts,
) -> None:
    found = await load(ports, b"Code,Rate,\nE-1,2,red\n")
    assert found.counts == Counts(created=1)
    assert "column C without a title (1 value)" in str(found.note)


async def test_a_column_of_percentages_stays_one_in_the_report(ports: ActivityPorts) -> None:
    item = {"document_type": "estimation_master", "service_id": "S1"}
    content = b"Item,Qty,Markup\nA,1,10%\nB,1,12%\nC,,12.50\n"
    first = await load(ports, content, **item)
    assert first.counts == Counts(created=2, rejected=1)
    again = await load_report(ports, first, {}, task_id="T2", **item)
    assert again.counts == Counts(rejected=1)
    assert again.problems[0].reason == first.problems[0].reason


async def test_doubtful_dates_come_back_as_they_were_and_are_refused_again(
    ports: ActivityPorts,
) -> None:
    rows = [["Badge", "From"], ["1", date(2025, 5, 1)], ["2", "01/13/2025"], ["3", "x"]]
    file = workbook(ports.folder / "us.xlsx", {"A": rows})
    member = {"document_type": "crew_member"}
    first = await load(ports, file.read_bytes(), **member)
    assert first.counts == Counts(created=1, rejected=2)
    again = await load_report(ports, first, {"x": "2025-01-07"}, task_id="T2", **member)
    assert again.counts == Counts(created=1, rejected=1)
    assert again.problems[0].reason.startswith("came back as it was: may have day and month")
    day_number = "45778"
    third = await load_report(ports, again, {day_number: "2025-01-05"}, task_id="T3", **member)
    assert third.counts == Counts(created=1)
