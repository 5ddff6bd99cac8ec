"""Writes the sample workbooks: the same bytes each time.

Run it from anywhere: `python samples/make_tables.py`. The delimited samples are plain files.
"""

import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import xlsxwriter

HERE = Path(__file__).parent
CREATED = datetime(2025, 1, 6, 8, 0, tzinfo=UTC).replace(tzinfo=None)

Rows = Sequence[Sequence[Any]]

FITTINGS = (
    ("PIPE-CS-S40", "Pipe, seamless, A106 Gr.B, sch 40", "m"),
    ("ELB-90-LR", "Elbow 90 deg, long radius, A234 WPB", "pcs"),
    ("TEE-EQ", "Tee, equal, A234 WPB", "pcs"),
    ("FLG-WN-150", "Flange, welding neck, class 150, RF", "pcs"),
    ("GSK-SPW-150", "Gasket, spiral wound, class 150", "pcs"),
    ("BLT-STD-M16", "Stud bolts with nuts, M16", "set"),
)
SIZES = ('2"', '3"', '4"', 6, 8)


def take_off() -> Rows:
    """A title block, the header on line 4, 120 lines, five of them wrong."""
    header = ["DWG No.", "Line No", "Spool", "Area", "System", "Ident", "Size", "Spec"]
    rows: list[list[Any]] = [
        ["Material take-off", "Terminal expansion, area 100"],
        ["Revision", "C", None, "Issued", "06 January 2025"],
        [],
        [*header, "Description", "Qty", "UoM", "Rev", "Checked by"],
    ]
    for n in range(120):
        drawing, size = n // 6, SIZES[n // 6 % len(SIZES)]
        ident, description, unit = FITTINGS[n % 6]
        rows.append(
            [
                f"ISO-100-{drawing + 1:03d}",
                f"100-P-{1000 + drawing}",
                f"SP-{drawing + 1:03d}-{n % 3 + 1}",
                100,
                "Cooling water" if drawing % 2 else "Firewater",
                ident,
                None if ident == "BLT-STD-M16" else size,
                "A1A",
                description,
                round(1.25 + n * 0.375, 3) if unit == "m" else n % 4 + 1,
                unit,
                "C",
                "kb",
            ]
        )
    first = 4
    rows[first + 7][5] = "PIPE-CS-S40"  # the second pipe of its drawing and size: a line, no fault
    rows[first + 11][0] = None
    rows[first + 20][9] = "tbd"
    rows[first + 47][5] = None
    rows[first + 60][9] = None
    rows[first + 90][6] = "1" * 120
    return rows


def estimate() -> Rows:
    """Thirty items, three of them wrong."""
    header = ["Item", "Cost Code", "WBS", "Description", "Unit", "Qty", "Unit Rate", "Man-Hours"]
    costs = ["Labour Cost", "Material Cost", "Equipment Cost", "Subcontract Cost", "Markup %"]
    rows: list[list[Any]] = [[*header, *costs]]
    for n in range(30):
        quantity, rate, hours = 10 + 5 * n, round(12.5 + n * 1.75, 2), 4 + 2 * n
        rows.append(
            [
                f"{n // 10 + 1}.{n % 10 + 1:02d}",
                5100 + n % 7,
                f"TE.A100.{n // 10 + 1:02d}",
                f"Work item {n + 1}",
                "m" if n % 2 else "pcs",
                quantity,
                rate,
                hours,
                round(hours * 41.2, 2),
                round(quantity * rate / 3, 6),
                None if n % 3 else 120,
                None,
                7.5,
            ]
        )
    rows[12][7] = -12
    rows[18][0] = "1.05"
    rows[25][6] = "#N/A"
    return rows


def materials() -> Rows:
    """German headers below a title; three rows wrong."""
    titles = ["Material-Nr.", "Beschreibung", "ME", "Einzelpreis", "Währung", "Lieferant"]
    rows: list[list[Any]] = [["Materialstamm Rohrbau"], [*titles, "Lieferzeit"]]
    rows += [
        [
            f"{2000 + n:07d}" if n % 2 else 2000 + n,
            f"Rohrschelle DN{(n % 6 + 1) * 25}",
            "St",
            round(2.15 + n * 0.85, 2),
            "EUR",
            "Befestigungstechnik Höß" if n % 3 else None,
            5 + n % 4,
        ]
        for n in range(24)
    ]
    rows[5][3] = -3.5
    rows[9][6] = 6.5
    rows[14][0] = rows[10][0]
    return rows


def crews() -> Rows:
    """Eight crews, one without a code."""
    rows: list[list[Any]] = [
        ["Crew", "Name", "Foreman", "Shift", "Calendar", "Output/Hour"],
        ["K-01", "Piping north", "Jürgen Müller", "day", "5x10", 3.25],
        ["K-02", "Piping south", "Käthe Weiß", "day", "5x10", 3.1],
        ["K-03", "Scaffolding", "Günther Schäfer", "day", "6x10", 18],
        ["K-04", "Alloy welding", "Aoife Byrne", "night", "5x8", 1.4],
        ["K-05", "Insulation", "Per Lindqvist", "day", "5x10", 6.75],
        [None, "Crew without a code", "nobody", "day", "5x10", 1],
        ["K-07", "Hydrotest", "Ana Sousa", "day", "7x12", None],
        ["K-08", "=HYPERLINK is only a name", "Tomasz Kowalski", "swing", "5x8", 2],
    ]
    return rows


def hired() -> Rows:
    """Four hired machines and one that stands in `equipment.csv` as well."""
    return [
        ["Code", "Description", "Category", "Besitz", "Rate", "Rate Unit"],
        ["RT-001", "Light tower", "Lighting", "Miete", 48.5, "day"],
        ["RT-002", "Light tower", "Lighting", "Miete", 48.5, "day"],
        ["RT-003", "Welfare cabin", "Site", "gemietet", 310, "week"],
        ["RT-004", "Fuel bowser, 2 m3", "Fuel", "rented", 12.25, "day"],
        ["CR-0100", "Crawler crane, 100 t", "Crane", "rented", 179, "hour"],
    ]


GIVEN = ("Anna", "Björn", "Chiara", "David", "Éloïse", "Farid", "Grete", "Hugo", "Ida", "Jan")
FAMILY = ("Albrecht", "Bauer", "Conti", "Dubois", "Egger", "Fuchs")
COUNTRIES = ("Germany", "AUT", "Switzerland", "FR", "Italy", "GER")
GROUPS = ("Senior (18+)", "Junior", "Elite", "Masters (40+)", "Golden age")


def registrations() -> Rows:
    """Sixty people for one event: an unknown column with two unknown values, three
    people who cannot go in."""
    header = ["First name", "Surname", "E-mail", "Date of birth", "Gender", "Country", "Club"]
    rows: list[list[Any]] = [["City Marathon, registrations"], [*header, "Race group", "Bib"]]
    for n in range(60):
        given, family = GIVEN[n % 10], FAMILY[n // 10]
        rows.append(
            [
                given,
                family,
                f"runner{n + 1:02d}@example.org",
                f"{1 + n % 28:02d}.{1 + n % 12:02d}.{1960 + n * 3 % 45}",
                "f" if n % 10 in (0, 2, 4, 6, 8) else "m",
                COUNTRIES[n % len(COUNTRIES)],
                None if n % 4 else "SC Charlottenburg",
                GROUPS[n % len(GROUPS)],
                101 + n,
            ]
        )
    rows[20][2] = "runner19 at example.org"
    rows[33][3] = "31.02.1990"
    rows[47][2] = rows[12][2]
    return rows


def write_xlsx(name: str, sheet: str, rows: Rows) -> None:
    """Write rows into the first sheet of a workbook; text stays text."""
    options = {"strings_to_formulas": False, "strings_to_urls": False}
    with xlsxwriter.Workbook(str(HERE / name), options) as workbook:
        workbook.set_properties({"title": sheet, "author": "docflow", "created": CREATED})
        worksheet = workbook.add_worksheet(sheet)
        for line, cells in enumerate(rows):
            worksheet.write_row(line, 0, cells)


def write_ods(name: str, sheet: str, rows: Rows) -> None:
    """Write rows into an OpenDocument spreadsheet of one sheet."""
    table = "".join(
        f"<table:table-row>{''.join(map(_ods_cell, cells))}</table:table-row>" for cells in rows
    )
    spaces = " ".join(
        f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{prefix}:1.0"'
        for prefix in ("office", "table", "text")
    )
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {spaces} '
        f'office:version="1.3"><office:body><office:spreadsheet><table:table table:name="{sheet}">'
        f"{table}</table:table></office:spreadsheet></office:body></office:document-content>"
    )
    mimetype = "application/vnd.oasis.opendocument.spreadsheet"
    entry = 'manifest:file-entry manifest:full-path="{}" manifest:media-type="{}"'
    manifest = (
        '<?xml version="1.0" encoding="UTF-8"?><manifest:manifest manifest:version="1.3" '
        'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f"<{entry.format('/', mimetype)}/><{entry.format('content.xml', 'text/xml')}/>"
        "</manifest:manifest>"
    )
    with zipfile.ZipFile(HERE / name, "w") as package:
        for part, body in (
            ("mimetype", mimetype),
            ("content.xml", content),
            ("META-INF/manifest.xml", manifest),
        ):
            # The format wants its media type uncompressed, as the first part.
            method = zipfile.ZIP_STORED if part == "mimetype" else zipfile.ZIP_DEFLATED
            package.writestr(zipfile.ZipInfo(part), body, method)


def _ods_cell(value: Any) -> str:
    if value is None:
        return "<table:table-cell/>"
    text = f"<text:p>{escape(str(value))}</text:p>"
    if isinstance(value, str):
        return f'<table:table-cell office:value-type="string">{text}</table:table-cell>'
    return (
        f'<table:table-cell office:value-type="float" office:value="{value!r}">'
        f"{text}</table:table-cell>"
    )


def main() -> None:
    """Write every workbook next to this file."""
    write_xlsx("mto_area_100.xlsx", "Take-off", take_off())
    write_xlsx("estimate.xlsx", "Estimate", estimate())
    write_xlsx("materials.xlsx", "Material", materials())
    write_xlsx("crews.xlsx", "Crews", crews())
    write_xlsx("registrations.xlsx", "Registrations", registrations())
    write_ods("equipment_hired.ods", "Hired", hired())


if __name__ == "__main__":
    main()
