"""Tables that are loaded by the activity of rows, without Temporal."""

from collections.abc import Mapping
from typing import Any

import xlsxwriter

from activities.imports.rows import RowImports
from tests.support.imports.activities import ActivityPorts, environment, message_of, work_of
from workflows.imports.runs import HandlerOutcome

GOOD = b"Code,Rate,Colour\nE-1,10.5,red\nE-2,20,blue\n"
MIXED = b"Code,Rate\nE-1,1.5\nE-2,abc\nE-3,2.5\nE-1,3\nE-4,-1\nE-5,3\n"


async def load(
    ports: ActivityPorts,
    content: bytes | None,
    *,
    chunk_rows: int = 2,
    is_local: bool = False,
    **fields: Any,
) -> HandlerOutcome:
    """Load a table, in chunks of few rows; the one before where there is no content.

    Args:
        ports: Store, blobs and reports.
        content: Of the document.
        chunk_rows: Rows of a chunk.
        is_local: Whether it runs inside the worker of its workflow.
        fields: Of the message; `type` is the document type.
    """
    if content is not None:
        await ports.put("in/file", content)
    message = message_of(fields.pop("type", "equipment"), blob_name="in/file", **fields)
    activities = RowImports(
        ports.store, ports.blobs, ports.documents, ports.reports, ports.scratch, chunk_rows
    )
    return await environment(is_local=is_local).run(activities.load_rows, work_of(message))


async def corrected(
    ports: ActivityPorts, outcome: HandlerOutcome, corrections: Mapping[str, str]
) -> bytes:
    """A report as a person sends it again, with some texts corrected."""
    assert outcome.report is not None
    report, file = ports.folder / "report.xlsx", ports.folder / "corrected.xlsx"
    await ports.blobs.download(outcome.report.name, report)
    with ports.documents.open_workbook(report) as book, xlsxwriter.Workbook(str(file)) as target:
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
    return file.read_bytes()


def codes(ports: ActivityPorts, table: str = "equipment") -> list[str]:
    """Keys of a table, in the order of their rows."""
    return [key[1] for key in ports.store.tables.get(table, {})]
