"""The strategy `replace`: what goes with the rows that a document does not hold, and what stays."""

from datetime import date
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from tests.support.imports.activities import ActivityPorts
from tests.support.imports.loads import GOOD, MIXED, codes, load
from workflows.imports.runs import Counts
from workflows.shared.errors import INVALID_DOCUMENT


@pytest.fixture
def ports(tmp_path: Path) -> ActivityPorts:
    return ActivityPorts(tmp_path)


async def test_replace_removes_what_the_document_does_not_hold(ports: ActivityPorts) -> None:
    await load(ports, b"Code\nE-1\nE-9\n")
    outcome = await load(ports, GOOD, task_id="T2", strategy="replace")
    assert outcome.counts == Counts(created=1, updated=1, deleted=1)
    assert codes(ports) == ["E-1", "E-2"]
    assert ports.store.as_of == date(2025, 3, 4)


async def test_replace_removes_nothing_when_a_row_was_rejected(ports: ActivityPorts) -> None:
    await load(ports, b"Code\nE-2\nE-9\n")
    outcome = await load(ports, MIXED, task_id="T2", strategy="replace")
    assert outcome.counts == Counts(created=3, rejected=3)
    assert sorted(codes(ports)) == ["E-1", "E-2", "E-3", "E-5", "E-9"]
    assert outcome.note == "Nothing was removed, because 3 rows were rejected."


async def test_replace_removes_nothing_if_a_total_is_the_key_of_a_stored_row(
    ports: ActivityPorts,
) -> None:
    await load(ports, b"Code,Rate\nE-1,1\nE-2,2\nTotal,4\n")
    file = b"Code,Rate\nE-1,4\nE-3,5\nTotal,9\n"
    for _ in range(2):
        outcome = await load(ports, file, task_id="T2", strategy="replace")
        assert outcome.counts.deleted == 0
        assert "Nothing was removed, because 'Total' is the key of a stored row" in (
            outcome.note or ""
        )
    assert {key[1] for key in ports.store.tables["equipment"]} == {"E-1", "E-2", "E-3", "Total"}
    plain = await load(ports, file.replace(b"Total", b"Summe"), task_id="T3", strategy="replace")
    assert plain.counts.deleted == 2


async def test_replace_by_an_empty_document_is_refused(ports: ActivityPorts) -> None:
    await load(ports, GOOD)
    with pytest.raises(ApplicationError, match="must not replace everything") as caught:
        await load(ports, b"Code,Rate\n", task_id="T2", strategy="replace")
    assert caught.value.type == INVALID_DOCUMENT
    assert len(codes(ports)) == 2


async def test_stored_lines_get_their_section_or_are_asked_about(ports: ActivityPorts) -> None:
    fields = {"type": "estimation_master", "service_id": "S1"}
    await load(ports, b"Item,Description,Qty\nA,Dig,5\nB,Fill,7\n1,Walls,2\n", **fields)
    twice = b"Item,Description,Qty\n,Part one,\n1,Walls,2\n,Part two,\n1,Roof,3\n"
    with pytest.raises(ApplicationError, match="stored without one: send the file"):
        await load(ports, twice, task_id="T2", **fields)
    bill = b"Item,Description,Qty\n,Earthworks,\nA,Dig,5\nB,Fill,8\n"
    outcome = await load(ports, bill, task_id="T3", **fields)
    assert (outcome.counts.unchanged, outcome.counts.updated) == (1, 1)
    rows = ports.store.tables["estimate_lines"].values()
    assert [(row["item_code"], row["section"]) for row in rows] == [
        ("1", ""),
        ("A", "Earthworks"),
        ("B", "Earthworks"),
    ]
    outcome = await load(ports, twice, task_id="T4", strategy="replace", **fields)
    assert (outcome.counts.created, outcome.counts.deleted) == (2, 3)
