"""The report of rows that did not go in."""

import zipfile

from tests.support.imports.activities import environment
from tests.support.spreadsheets.activities import (
    HEADER,
    MIXED,
    SpreadsheetSetup,
    StagedSpreadsheet,
    table,
)
from workflows.shared.contracts import BlobRef
from workflows.spreadsheets.runs import ReportInput


async def report_of(setup: SpreadsheetSetup, prepared: StagedSpreadsheet) -> BlobRef | None:
    work = ReportInput(
        order=prepared.order,
        staged=prepared.staged,
        layout=prepared.analysis.layout,
        columns=prepared.columns,
    )
    return await environment().run(setup.reports.write_report, work)


async def test_the_report_holds_the_rows_that_are_wrong(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(table(*MIXED))
    await prepared.process()
    report = await report_of(setup, prepared)
    assert report is not None
    assert report.name == f"spreadsheets/{prepared.order.uuid}/report.xlsx"
    header, *rows = await setup.read(report.name)
    assert header == ["what is wrong", *HEADER]
    assert [row[1:] for row in rows] == [
        ["Bob", "B", "no mail", "=HYPERLINK(1)"],
        [None, None, "neither"],
    ]
    assert str(rows[0][0]).startswith("Email: ")
    path = setup.folder / "report"
    await setup.blobs.download(report.name, path)
    with zipfile.ZipFile(path) as archive:
        comments = archive.read("xl/comments1.xml").decode()
        assert b"<f>" not in archive.read("xl/worksheets/sheet1.xml")
    assert 'ref="D2"' in comments and 'ref="C3"' in comments
    again = await report_of(setup, prepared)
    assert again is not None and again.name == report.name
    noted = {blob.name for blob in await setup.store.files_of(prepared.order.uuid)}
    assert report.name in noted


async def test_unmapped_columns_stay_in_the_report(setup: SpreadsheetSetup) -> None:
    long = "x" * 300
    content = table(["x", "", "First name", "Last name"], ["1", "", long, "A"], ["2", "", long, ""])
    prepared = await setup.prepare(content)
    await prepared.process()
    report = await report_of(setup, prepared)
    assert report is not None
    header, *rows = await setup.read(report.name)
    assert header == ["what is wrong", "x", None, "First name", "Last name"]
    assert [row[1] for row in rows] == ["1", "2"]


async def test_no_report_without_errors(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(table(HEADER, ["Anna", "A", "", ""]))
    await prepared.process()
    assert await report_of(setup, prepared) is None
