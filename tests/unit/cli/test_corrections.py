"""`docflow retry` with a corrected file, another sheet, the meaning of columns, a schedule."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.support.cli_fakes import FakeInstallation, FakeRuns, a_row, a_view
from workers.shared.services.errors import Refused
from workflows.imports.messages import DocumentType
from workflows.imports.runs import ImportState, Retry

PARKED = a_view(parked=True)


def installation(**row: object) -> FakeInstallation:
    made = FakeInstallation(runs=FakeRuns(PARKED))
    made.tasks.rows.append(a_row("P1", "T1", **{"state": ImportState.PARKED, **row}))
    return made


def answers(made: FakeInstallation) -> list[tuple[str, str, object]]:
    assert isinstance(made.runs, FakeRuns)
    return [*made.runs.answers]


def test_fields_are_changed_by_options() -> None:
    made = installation()
    done = made.docflow(
        *("retry", "P1/T1", "--sheet", "Rev B", "--map", "Qty=quantity", "--map", "a=b=unit"),
        *("--set", "max_rejected_share=0.5", "--schedule", "U100", "--leading-zeros", "same"),
        *("--date-order", "mdy", "--decimal", ",", "--left-out", "ask"),
        *("--keep-line", "7", "--keep-line", "Rev B!9"),
    )
    assert done.exit_code == 0, done.output
    changes = {
        "sheet": "Rev B",
        "schedule_id": "U100",
        "map": {"Qty": "quantity", "a=b": "unit"},
        "date_order": "mdy",
        "decimal": ",",
        "leading_zeros": "same",
        "left_out": "ask",
        "keep_lines": ("7", "Rev B!9"),
        "max_rejected_share": "0.5",
    }
    assert answers(made) == [("import/P1/T1", "retry", Retry(changes=changes, by="ada"))]


@pytest.mark.parametrize(
    ("document_type", "fields"),
    [
        (DocumentType.EQUIPMENT, ("blob_name", "filename")),
        (DocumentType.SCHEDULE_UPLOAD, ("temp_blob_name", "original_filename")),
    ],
)
def test_a_corrected_file_is_stored_under_a_name_of_its_own(
    tmp_path: Path, document_type: DocumentType, fields: tuple[str, str]
) -> None:
    made = installation(document_type=document_type)
    file = tmp_path / "Liste (neu).csv"
    file.write_text("code\nE-1\n")
    done = made.docflow("retry", "P1/T1", "--file", str(file))
    assert done.exit_code == 0, done.output
    ((_, _, answer),) = answers(made)
    assert isinstance(answer, Retry)
    blob, name = (answer.changes[field] for field in fields)
    assert name == "Liste (neu).csv"
    assert isinstance(blob, str)
    assert re.fullmatch(r"uploads/P1/T1/[0-9a-f]{8}/Liste_neu_.csv", blob)
    assert asyncio.run(made.blobs.stat(blob)).size == file.stat().st_size


def test_a_file_is_not_stored_for_a_run_that_takes_none(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("x")
    for row, says in (
        ({"state": ImportState.COMPLETED}, "only a parked import"),
        ({"document_type": DocumentType.MTO_DELETE}, "no file"),
    ):
        made = installation(**row)
        done = made.docflow("retry", "P1/T1", "--file", str(file))
        assert done.exit_code != 0
        assert says in done.stderr
        assert answers(made) == []
        assert asyncio.run(made.blobs.list("uploads/", 10)) == []


def test_a_refused_file_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = installation()

    async def refuse(*_: object) -> None:
        raise Refused("equipment has no field schedule_id")

    monkeypatch.setattr(made.runs, "answer", refuse)
    file = tmp_path / "a.csv"
    file.write_text("x")
    done = made.docflow("retry", "P1/T1", "--file", str(file), "--schedule", "U100")
    assert "has no field schedule_id" in done.stderr
    assert asyncio.run(made.blobs.list("uploads/", 10)) == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("P1/T1", "--map", "Qty"), "--map 'Qty': write NAME=VALUE"),
        (("P1/T1", "--set", "=x"), "--set '=x': write NAME=VALUE"),
        (("--all", "--sheet", "x"), "--all and changes do not go together"),
        (("batch/7/1", "--sheet", "x"), "sheet: batch/7/1 takes no corrected document"),
    ],
)
def test_what_does_not_go_together_is_refused(options: tuple[str, ...], says: str) -> None:
    done = installation().docflow("retry", *options)
    assert done.exit_code == 2
    assert says in done.stderr
