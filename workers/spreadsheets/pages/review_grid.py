"""The grid of a review: its rows in windows, its changes, and what stands around it, as JSON."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from fastapi.responses import JSONResponse

from activities.spreadsheets.review_rules import ReviewRow
from workers.shared.gateway.pages.renderer import gettext, localised
from workers.shared.gateway.pages.site import Form, Site, Visitor
from workers.shared.services.errors import Refused
from workers.spreadsheets.pages import review_panel
from workers.spreadsheets.pages.review_panel import key_of, operation_of
from workers.spreadsheets.review_files import RowFilter
from workers.spreadsheets.service import SpreadsheetService
from workers.spreadsheets.statuses import LARGEST_PAGE
from workflows.spreadsheets.reviews import Exclude, Operation, SetCells

_PARTS: Final = {
    "review-head": "review_head.html",
    "review-why": "review_why.html",
    "review-changes": "review_changes.html",
}
"""Id of each part of the page that shows figures or changes, and its template."""


class GridPages:
    """What the script of a review's grid asks for; refusals are the notices of all pages."""

    def __init__(self, site: Site, service: SpreadsheetService) -> None:
        self._site = site
        self._service = service

    async def rows(
        self,
        request: Request,
        uuid: str,
        at: Annotated[int, Query(ge=0, le=2**31)] = 0,
        size: Annotated[int, Query(ge=1, le=LARGEST_PAGE)] = LARGEST_PAGE,
        lines: Annotated[str, Query(max_length=4_000, pattern="^[0-9,]*$")] = "",
    ) -> Response:
        """Rows as they are now: from a place of the file on, or by their numbers."""
        visitor = await self._site.visitor(request)
        review = self._service.review
        if lines:
            wanted = _numbers(lines)
            version, found = await review.some_rows(visitor.who, uuid, wanted)
        else:
            version, found = await review.rows_at(visitor.who, uuid, at, size)
        return JSONResponse({"version": version, "rows": [_row(each) for each in found]})

    async def lines(
        self,
        request: Request,
        uuid: str,
        rows: RowFilter = RowFilter.PROBLEMS,
        column: Annotated[int | None, Query(ge=1, le=256)] = None,
    ) -> Response:
        """Numbers of all rows that a filter leaves."""
        visitor = await self._site.visitor(request)
        version, found = await self._service.review.lines(visitor.who, uuid, rows, column)
        return JSONResponse({"version": version, "lines": list(found)})

    async def state(self, request: Request, uuid: str) -> Response:
        """Figures, columns and changes as they are now."""
        visitor = await self._site.visitor(request)
        return JSONResponse(await self._state(visitor, uuid))

    async def change(self, request: Request, uuid: str) -> Response:
        """Make a change, and show the rows that it concerns as they are afterwards."""
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        operation = operation_of(form)
        outcome = await self._service.review.change(
            visitor.who, uuid, operation, _version(form), key=key_of(form, operation)
        )
        state = await self._state(visitor, uuid)
        rows: Sequence[ReviewRow] | None = None
        concerned = _concerned(operation)
        if concerned and len(concerned) <= LARGEST_PAGE:
            _, rows = await self._service.review.some_rows(visitor.who, uuid, concerned)
        return JSONResponse(
            state
            | {
                "made": outcome.version,
                "cells": outcome.changed_cells,
                "rows": None if rows is None else [_row(each) for each in rows],
            }
        )

    async def preview(self, request: Request, uuid: str) -> Response:
        """Show what a change would do."""
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        operation = operation_of(form)
        outcome = await self._service.review.preview(visitor.who, uuid, operation)
        proposed = await review_panel.proposed(
            self._service, visitor.who, uuid, review_panel.Proposed(operation, outcome)
        )
        return self._site.page(request, visitor, "review_proposed.html", proposed=proposed)

    async def _state(self, visitor: Visitor, uuid: str) -> dict[str, Any]:
        row = await self._service.get(visitor.who, uuid)
        context = await review_panel.around(self._service, visitor.who, row)
        shown = {
            **context,
            "row": row,
            "who": visitor.who,
            "csrf": visitor.csrf,
            "announcement": "",
            "focus": "",
            "place": review_panel.FIRST_ROWS,
        }
        parts = {
            id: self._site.templates.render(template, **shown) for id, template in _PARTS.items()
        }
        return context["state"] | {"parts": parts}


def _version(form: Form) -> int:
    version = form.whole("version")
    if version is None:
        raise Refused(gettext("the form is incomplete; load the page again"))
    return version


def _numbers(text: str) -> Sequence[int]:
    found = [int(each) for each in text.split(",") if each]
    if len(found) > LARGEST_PAGE or max(found, default=0) > 2**53:
        raise Refused(gettext("the form cannot be read; load the page again"))
    return found


def _concerned(operation: Operation) -> Sequence[int]:
    """Rows that an operation names; none: any may differ."""
    match operation:
        case SetCells(cells=cells):
            return sorted({cell.row for cell in cells})
        case Exclude(rows=rows):
            return rows
        case _:
            return ()


def _row(row: ReviewRow) -> dict[str, Any]:
    """A row as the grid takes it: values by column, and what is to be said of some cells."""
    marks: dict[int, dict[str, str]] = {}
    for cell in row.cells:
        said = {
            "problem": localised(cell.problem or ""),
            "remark": localised(cell.remark or ""),
            "hint": review_panel.hint_of(cell),
        }
        if said := {name: text for name, text in said.items() if text}:
            marks[cell.column] = said
    return {
        "line": row.line,
        "out": row.excluded,
        "problems": [localised(each) for each in row.problems],
        "cells": {cell.column: cell.value for cell in row.cells if cell.value is not None},
        "marks": marks,
    }
