"""How much a file may ask for. What asks for more is refused, with the figure in the message.

The figures leave room for any honest document and bound time and memory for the others.
"""

from typing import Final

MB: Final = 1 << 20

ROWS: Final = 1_048_576
"""Rows of a worksheet, as in Excel."""

MERGES: Final = 100_000
"""Merged ranges of a worksheet that are looked at."""
COLUMNS: Final = 1_000
"""Columns that hold anything: a row is a list, so one cell in column XFD would cost 16,384."""

CELL_CHARACTERS: Final = 32_767
"""Characters of a worksheet's cell, as in Excel. Text files have the limit of `csv`, 131,072."""

PACKAGE_PARTS: Final = 10_000
"""Files in an Office package; a large workbook holds some hundred."""

PACKAGE_DIRECTORY_BYTES: Final = 4 * MB
"""The zip directory is read at once, before its entries can be looked at."""

PACKAGE_RATIO: Final = 200
"""Unpacked to packed bytes: sheets reach 20 to 40, a bomb of one repeated byte 1,000."""

PACKAGE_RATIO_FREE_BYTES: Final = 16 * MB
"""Packages that unpack to less than this may have any ratio."""

SHEET_BYTES: Final = 8 << 30
"""Unpacked XML of one worksheet: 1,048,576 rows of some 200 cells."""

STRINGS_BYTES: Final = 2 << 30
"""Unpacked XML of the shared strings; they are spilled to a temporary file on the way."""

SMALL_PART_BYTES: Final = 32 * MB
"""Unpacked XML of a part that is held in memory: workbook, relations, styles."""

SHEETS: Final = 1_000
"""Sheets of a workbook."""

STYLES: Final = 65_536
"""Cell formats of a workbook, as in Excel."""

XML_DEPTH: Final = 64
"""Nesting of elements; a worksheet needs 7."""

XML_TOKEN_BYTES: Final = 4 * MB
"""One tag or text that the XML parser has to hold until its end arrives."""

LINE_BYTES: Final = 8 * MB
"""One physical line of a text file."""

RECORD_LINES: Final = 10_000
"""Physical lines of one record of a text file: quoted fields may hold line breaks."""

ODS_CELLS: Final = 20_000_000
"""Rows times columns of the sheets of an ODS file, repeated ones included."""
LEGACY_FILE_BYTES: Final = 256 * MB
"""An XLS or ODS file: its reader holds all of it."""

LEGACY_MEMORY_BYTES: Final = 1536 * MB
"""Address space of the process that reads XLS and ODS."""

LEGACY_CPU_SECONDS: Final = 300
"""Processor time of the process that reads XLS and ODS."""

LEGACY_SECONDS: Final = 24 * 3600
"""Time of the process that reads XLS and ODS: it waits for whoever takes its rows."""

DAMAGED_PAGES: Final = 1_000
"""Pages of a PDF that may be damaged, before no further page is read."""

TEXT_BYTES: Final = 20 * MB
"""Text that is kept of one document, as UTF-8."""

TEXT_BLOCK_CHARACTERS: Final = 1 << 16
"""Characters of a text file that are taken at once."""

METADATA_ENTRIES: Final = 50
"""Metadata of a document."""

METADATA_CHARACTERS: Final = 1_000
"""One of those entries."""

NOTES: Final = 20
"""What could not be read of a document."""

THREAD_IDS: Final = 100
"""Message ids of a mail: its own and those that it answers."""

MESSAGE_ID_CHARACTERS: Final = 500
"""One of them; RFC 5322 leaves room for less than a thousand."""

MAIL_BYTES: Final = 160 * MB
"""A mail with its files: its reader holds all of it; mail servers take at most some 150 MB."""

PDF_COMPARED_BYTES: Final = 32 * MB
"""A PDF of which some pages are read twice: its reader holds what they need."""

PDF_COMPARED_CHARACTERS: Final = 5_000
"""Characters of such a page."""

PDF_COMPARED_GLYPHS: Final = 1 << 16
"""Glyphs of a font in it."""

DOCX_BYTES: Final = 400 * MB
"""A Word document, unpacked: its reader holds all of it, pictures as well."""

OFFICE_BYTES: Final = 400 * MB
"""Another Office file, unpacked, and the text of it before it is cut off."""

OFFICE_CELLS: Final = 20_000_000
"""Cells of the tables in an Office file."""

ATTACHED_FILES: Final = 1_000
"""Files taken out of one document."""

ATTACHED_BYTES: Final = 512 * MB
"""All of them."""

FILENAME_BYTES: Final = 180
"""Of a name as UTF-8; file systems take 255, and a number goes before it."""

READER_MEMORY_BYTES: Final = 1024 * MB
"""Address space of the process that reads one document."""

READER_CPU_SECONDS: Final = 60
"""Processor time of the process that reads one document."""

READER_SECONDS: Final = 300
"""Time of the process that reads one document, however busy the machine is."""

READER_FILE_BYTES: Final = 2 << 30
"""The largest file that a process writes while it reads one document."""
HELD_BYTES: Final = 256 * MB
"""A JSON or KML file of vector data: its reader holds all of it."""

VECTOR_BYTES: Final = 2 << 30
"""Vector data in one archive, unpacked; ESRI's programs write at most 2 GB a file."""

VECTOR_MEMORY_BYTES: Final = 4096 * MB
"""Address space of the process that reads vector data."""

VECTOR_CPU_SECONDS: Final = 1_500
"""Processor time of the process that reads vector data."""

VECTOR_SECONDS: Final = 1_700
"""Time of the process that reads vector data, below the half hour of its task."""
