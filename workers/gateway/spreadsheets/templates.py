"""A spreadsheet to begin with: the columns of an import type, and help.

Its first sheet has headers alone: an example that stays there would be imported as a person.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import uuid4

from adapters.files.tables.workbooks import WorkbookSheet, write_workbook
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.types.base import SheetType
from domain.tabular.fields import ColumnKind
from workers.gateway.pages.language import N_, gettext, localised
from workers.services.errors import NotFound
from workers.services.spreadsheets.queries import ReportFile
from workers.services.spreadsheets.service import SpreadsheetService

_KINDS: Final[Mapping[ColumnKind, str]] = {
    ColumnKind.TEXT: N_("Text"),
    ColumnKind.CODE: N_("Identifier, kept as it stands"),
    ColumnKind.MAIL: N_("Mail address"),
    ColumnKind.DECIMAL: N_("Number"),
    ColumnKind.INTEGER: N_("Whole number"),
    ColumnKind.PLACE: N_("Whole number"),
    ColumnKind.DATE: N_("Date"),
    ColumnKind.DURATION: N_("Time as hours:minutes:seconds"),
    ColumnKind.ENTITY: N_("Name of an existing entry"),
}
_CREATES: Final = N_("Name of an entry, existing or new")
_ALIASES: Final = 4
"""Other headers of a field that the help names."""


def kind_words(field: SheetField) -> str:
    """What the cells of a field hold, in the language of the request."""
    if field.kind is ColumnKind.CHOICE:
        return gettext("One of: %(choices)s", choices=", ".join(field.choices))
    return localised(_CREATES if field.creates else _KINDS[field.kind])


def template_sheets(kind: SheetType) -> Sequence[WorkbookSheet]:
    """The sheets of a template: columns to fill in, and help."""
    fields = kind.fields
    headers = [localised(field.title) for field in fields]
    help_headers = (
        gettext("Column"),
        gettext("Required"),
        gettext("What it holds"),
        gettext("Examples"),
        gettext("Also understood"),
    )
    rows = [
        (
            header,
            gettext("yes") if field.required else gettext("no"),
            kind_words(field),
            ", ".join(field.examples),
            ", ".join(field.aliases[:_ALIASES]),
        )
        for header, field in zip(headers, fields, strict=True)
    ]
    hint = gettext(
        "Write your rows below the headers of the first sheet. Columns may be left out, unless "
        "they are required, and stand in any order."
    )
    return (
        WorkbookSheet(localised(kind.title), headers, []),
        WorkbookSheet(gettext("Help"), help_headers, [*rows, (hint, "", "", "", "")]),
    )


async def template_file(service: SpreadsheetService, name: str) -> ReportFile:
    """The template of an import type as XLSX, in the language of the request.

    Raises:
        NotFound: There is no such type.
    """
    kind = next((each for each in service.types() if each.name == name), None)
    if kind is None:
        raise NotFound(gettext("there is no such import type"))
    path = service.scratch / f"template-{uuid4().hex}.xlsx"
    await asyncio.to_thread(write_workbook, template_sheets(kind), path)
    return ReportFile(path, f"{kind.name.lower().replace('_', '-')}-template.xlsx")
