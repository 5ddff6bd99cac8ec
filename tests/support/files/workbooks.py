"""Workbooks written by hand, so that a test decides about every byte."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

SHEET_NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


def sheet_xml(rows: str) -> str:
    """A worksheet part around some `row` elements."""
    return (
        f'{_HEAD}<worksheet xmlns="{SHEET_NAMESPACE}" xmlns:r="{_OFFICE}"><dimension ref="A1"/>'
        f'<sheetData>{rows}</sheetData><pageMargins left="0.7" right="0.7"/></worksheet>'
    )


def strings_xml(*items: str) -> str:
    """A shared strings part; each item is the inside of an `si` element."""
    body = "".join(f"<si>{item}</si>" for item in items)
    return f'{_HEAD}<sst xmlns="{SHEET_NAMESPACE}">{body}</sst>'


def styles_xml(*formats: str) -> str:
    """A styles part; cell format 0 is General, the next ones have these patterns."""
    known = "".join(
        f'<numFmt numFmtId="{164 + n}" formatCode="{pattern}"/>'
        for n, pattern in enumerate(formats)
    )
    cells = "".join(f'<xf numFmtId="{164 + n}"/>' for n in range(len(formats)))
    return (
        f'{_HEAD}<styleSheet xmlns="{SHEET_NAMESPACE}"><numFmts>{known}</numFmts>'
        f'<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
        f'<cellXfs><xf numFmtId="0"/>{cells}</cellXfs></styleSheet>'
    )


def write_workbook(
    path: Path,
    sheets: Mapping[str, str | bytes],
    *,
    strings: str | None = None,
    styles: str | None = None,
    date1904: bool = False,
    extra: Mapping[str, bytes] | None = None,
) -> Path:
    """Write an XLSX file.

    Args:
        path: Where.
        sheets: Worksheet parts by sheet name.
        strings: Shared strings part.
        styles: Styles part.
        date1904: Days count from 1904.
        extra: More parts, by name; they replace those of the same name.
    """
    listed = "".join(
        f'<sheet name="{name}" sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(sheets, 1)
    )
    relations = "".join(
        f'<Relationship Id="rId{n}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, len(sheets) + 1)
    )
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": f"{_HEAD}<Types/>",
        "_rels/.rels": f'{_HEAD}<Relationships xmlns="{_RELATIONS}"><Relationship Id="rId1"'
        f' Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'{_HEAD}<workbook xmlns="{SHEET_NAMESPACE}" xmlns:r="{_OFFICE}">'
        f'<workbookPr date1904="{int(date1904)}"/><sheets>{listed}</sheets></workbook>',
    }
    for n, content in enumerate(sheets.values(), 1):
        parts[f"xl/worksheets/sheet{n}.xml"] = content
    for kind, part in {"sharedStrings": strings, "styles": styles}.items():
        if part is not None:
            parts[f"xl/{kind}.xml"] = part
            relations += (
                f'<Relationship Id="{kind}" Type="{_OFFICE}/{kind}" Target="/xl/{kind}.xml"/>'
            )
    parts["xl/_rels/workbook.xml.rels"] = (
        f'{_HEAD}<Relationships xmlns="{_RELATIONS}">{relations}</Relationships>'
    )
    parts.update(extra or {})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return path
