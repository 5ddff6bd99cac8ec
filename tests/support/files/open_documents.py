"""OpenDocument spreadsheets, written by hand."""

import io
import zipfile
from collections.abc import Sequence

_NAMES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
    ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    ' xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"'
    ' xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"'
)


def ods(
    sheet: str,
    rows: Sequence[Sequence[str | float]],
    *,
    repeat_rows: int = 1,
    repeat_columns: int = 1,
) -> bytes:
    """An ODS file of one empty sheet and one with these rows; '' is a blank cell.

    Args:
        sheet: Name of the sheet.
        rows: Its values.
        repeat_rows: How often each row is said to occur.
        repeat_columns: How often each cell is said to occur.
    """
    row = f'<table:table-row table:number-rows-repeated="{repeat_rows}">'
    body = "".join(
        row
        + ("".join(_cell(value, repeat_columns) for value in values) or _cell("", 1))
        + "</table:table-row>"
        for values in rows
    )
    return ods_of(
        f'<table:table table:name="Empty"/><table:table table:name="{sheet}">{body}</table:table>'
    )


def ods_of(tables: str, styles: str = "") -> bytes:
    """An ODS file with these tables.

    Args:
        tables: XML of the tables.
        styles: XML of their styles.
    """
    content = (
        f'<?xml version="1.0"?><office:document-content {_NAMES}>'
        f"<office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body>"
        "</office:document-content>"
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", '<?xml version="1.0"?><manifest/>')
        archive.writestr("content.xml", content)
    return buffer.getvalue()


def _cell(value: str | float, times: int) -> str:
    repeated = f'table:number-columns-repeated="{times}"'
    if value == "":
        return f"<table:table-cell {repeated}/>"
    if isinstance(value, str):
        kind = 'office:value-type="string"'
    else:
        kind = f'office:value-type="float" office:value="{value}"'
    return f"<table:table-cell {kind} {repeated}><text:p>{value}</text:p></table:table-cell>"
