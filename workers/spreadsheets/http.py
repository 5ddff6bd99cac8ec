"""What the API and the pages of spreadsheets share: problems, versions, files that are sent.

A template is a spreadsheet to begin with: the columns of an import type, and help. Its first sheet
has headers alone: an example that stays there would be imported as a person.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Protocol, TypeVar, cast
from uuid import uuid4

from fastapi import Depends, Header, Path, Request
from pydantic import AfterValidator, BeforeValidator

from activities.spreadsheets.types.base import SheetType
from adapters.files.tables.workbooks import WorkbookSheet, write_workbook
from workers.shared.gateway.http.answers import Download
from workers.shared.gateway.http.etags import versions_of
from workers.shared.gateway.http.problems import ProblemDescription, problem_responses
from workers.shared.gateway.http.requests import PageCursor, PageLimit
from workers.shared.gateway.pages.renderer import N_, gettext, localised
from workers.shared.services.errors import Conflict, NotFound, Refused, UnsupportedFile, WrongState
from workers.shared.services.identity import Identity
from workers.spreadsheets.queries import ReportFile
from workers.spreadsheets.register import NAME
from workers.spreadsheets.runs import StillOpen
from workers.spreadsheets.service import SpreadsheetService
from workflows.shared.fields import ColumnKind, FieldSpec

_DESCRIPTIONS: Final[Mapping[int, ProblemDescription]] = {
    404: ProblemDescription(NotFound.kind, "no such import in your organisations"),
    406: ProblemDescription(StillOpen.kind, "required mappings are still open"),
    409: ProblemDescription(WrongState.kind, "not in this state of the import"),
    412: ProblemDescription(Conflict.kind, "the mappings were changed by another person"),
    415: ProblemDescription(UnsupportedFile.kind, "not a spreadsheet, or not a form upload"),
}


def import_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Entries of an OpenAPI document for problems of these statuses."""
    return problem_responses(*statuses, further=_DESCRIPTIONS)


XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


class ReportDownload(Download):
    """Sends an error report and deletes it."""

    def __init__(self, report: ReportFile) -> None:
        super().__init__(report.path, media_type=XLSX, filename=report.filename)


_VERSION: Final = re.compile(r"\d{1,15}")


def _service_of(request: Request) -> SpreadsheetService:
    return cast("SpreadsheetService", request.app.state.services[NAME])


TheService = Annotated[SpreadsheetService, Depends(_service_of)]
ImportId = Annotated[
    str,
    # A UUID is the same in capitals (RFC 9562, section 4).
    AfterValidator(str.lower),
    Path(
        alias="uuid",
        max_length=100,
        description="Identifier of an import.",
        examples=["0d2f8a52-6c1e-4d4e-9d8f-5b1a7f0c2b11"],
    ),
]
UploadId = Annotated[
    str,
    # The address takes UUIDs alone, which have one spelling.
    BeforeValidator(str),
    Path(
        alias="uuid",
        max_length=36,
        description="UUID of an upload.",
        examples=["0d2f8a52-6c1e-4d4e-9d8f-5b1a7f0c2b11"],
    ),
]
IfMatch = Annotated[
    str | None,
    Header(
        max_length=1000,
        description="ETag of the mappings that the answer is based on; 412 when they have changed.",
        examples=['"3"'],
    ),
]


VERSIONED: Final[dict[str, Any]] = {
    "ETag": {
        "schema": {"type": "string"},
        "description": "Version of the mappings, for If-Match",
        "example": '"3"',
    }
}
"""Header of answers about mappings."""
MappingStatusName = Literal["AUTO_MATCHED", "MANUAL_MATCHED", "UNRESOLVED", "IGNORED"]
T_co = TypeVar("T_co", covariant=True)


class Paged(Protocol[T_co]):
    """Some of many."""

    @property
    def items(self) -> Sequence[T_co]:
        """Those of the page."""
        ...

    @property
    def total(self) -> int:
        """How many there are on all pages."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page of a list begins.

    Attributes:
        page: From 0.
        size: Items of a page.
        before: Items of the page that the caller has.
    """

    page: int
    size: int
    before: int

    def rest(self, found: Paged[T_co]) -> tuple[Sequence[T_co], str | None]:
        """What of a page the caller does not have, and the cursor of the next one."""
        end = (self.page + 1) * self.size
        return found.items[self.before :], str(end) if found.total > end else None


def _place_of(limit: PageLimit = 50, cursor: PageCursor = None) -> Place:
    if cursor is not None and not _VERSION.fullmatch(cursor):
        raise Refused("cursor: send `next` of the page before")
    page, before = divmod(int(cursor or 0), limit)
    return Place(page, limit, before)


ThePlace = Annotated[Place, Depends(_place_of)]
"""The place that `limit` and `cursor` of a request name."""
FILE: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "XLSX",
        "content": {XLSX: {"schema": {"type": "string", "format": "binary"}}},
    }
}
"""An entry of an OpenAPI document for a file that is sent."""


def answers_with(status: int, *headers: Mapping[str, Any]) -> dict[int | str, dict[str, Any]]:
    """An entry of an OpenAPI document for the headers of an answer."""
    named = {name: value for each in headers for name, value in each.items()}
    return {status: {"description": "Successful Response", "headers": named}}


async def expected_version(
    service: SpreadsheetService, who: Identity, uuid: str, header: str | None
) -> int | None:
    """The version that an answer is based on.

    Of several, the one that is current counts.

    Raises:
        Conflict: None of the tags can be current.
    """
    tags = versions_of(header)
    if tags is None:
        return None
    versions = [int(tag) for tag in tags if _VERSION.fullmatch(tag)]
    if len(versions) == 1:
        return versions[0]
    current = (await service.get(who, uuid)).version
    if current in versions:
        return current
    raise Conflict(
        f"If-Match holds none of the current tags: the mappings are at version {current}", current
    )


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
    ColumnKind.BOOLEAN: N_("Yes or no"),
    ColumnKind.TIME: N_("Time of day"),
    ColumnKind.TIMESTAMP: N_("Date with a time of day"),
    ColumnKind.MONEY: N_("Amount of money"),
    ColumnKind.PHONE: N_("Telephone number"),
}
_CREATES: Final = N_("Name of an entry, existing or new")
_CHOICES: Final = 20
"""Choices that the help names."""
_ALIASES: Final = 4
"""Other headers of a field that the help names."""


def kind_words(field: FieldSpec) -> str:
    """What the cells of a field hold, in the language of the request."""
    if field.kind is ColumnKind.CHOICE:
        named = list(field.choices)[:_CHOICES]
        more = ["…"] if len(field.choices) > _CHOICES else []
        return gettext("One of: %(choices)s", choices=", ".join([*named, *more]))
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
    kind = next((each for each in await service.types() if each.name == name), None)
    if kind is None:
        raise NotFound(gettext("there is no such import type"))
    path = service.scratch / f"template-{uuid4().hex}.xlsx"
    await asyncio.to_thread(write_workbook, template_sheets(kind), path)
    return ReportFile(path, f"{kind.name.lower().replace('_', '-')}-template.xlsx")
