"""What people do in a review: correct cells, change columns, continue."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

from fastapi import Query, Request, Response

from activities.spreadsheets.review_rules import ChangeEffect
from workers.shared.gateway.http.upload import Upload
from workers.shared.gateway.pages.renderer import counted, gettext
from workers.shared.gateway.pages.site import Alert, Form, Site, Visitor, sentence
from workers.shared.services.errors import Conflict, Forbidden, Refused, ServiceError, WrongState
from workers.spreadsheets.http import ReportDownload
from workers.spreadsheets.pages.import_pages import ImportPage, ViewRequest
from workers.spreadsheets.pages.review_panel import (
    FIRST_ROWS,
    Corrected,
    Proposed,
    ReviewRequest,
    RowsPlace,
    corrected,
    in_words,
    key_of,
    operation_of,
    place_of,
)
from workers.spreadsheets.review_files import RowFilter
from workers.spreadsheets.runs import StillOpen
from workers.spreadsheets.service import SpreadsheetService
from workers.spreadsheets.upload_form import check_beginning
from workflows.spreadsheets.reviews import Operation

_REFUSALS = (Conflict, Forbidden, Refused, StillOpen, WrongState)
_LOST = (Forbidden, StillOpen, WrongState)
"""What makes the corrections of a form useless."""


class ReviewPages:
    """The forms of the panel of a review."""

    def __init__(self, site: Site, service: SpreadsheetService, page: ImportPage) -> None:
        self._site = site
        self._service = service
        self._page = page

    async def rows(self, request: Request, uuid: str) -> Response:
        """Save corrections of the grid; turn its page or continue, if that was wanted."""
        saved: list[Operation] = []

        async def save(visitor: Visitor, form: Form) -> ViewRequest:
            review, who, version = self._service.review, visitor.who, _version(form)
            operations = corrected(form).operations()
            for operation in operations:
                key = key_of(form, operation)
                outcome = await review.change(who, uuid, operation, version, key=key)
                version = outcome.version
                saved.append(operation)
            match form.text("do"):
                case "confirm":
                    await self._service.confirm_cells(who, uuid, version)
                    return ViewRequest(focus="panel")
                case "import":
                    await review.import_now(who, uuid, version)
                    return ViewRequest(focus="panel")
                case _:
                    place = place_of(form.text("turn")) or _place(form)
                    words = gettext("Saved.") if operations else gettext("Nothing was changed.")
                    return ViewRequest(review=ReviewRequest(place), announcement=words)

        return await self._take(request, uuid, save, saved=saved)

    async def preview(self, request: Request, uuid: str) -> Response:
        """Show what a change of a column would do."""

        async def look(visitor: Visitor, form: Form) -> ViewRequest:
            operation = operation_of(form)
            outcome = await self._service.review.preview(visitor.who, uuid, operation)
            proposed = Proposed(operation, outcome)
            return ViewRequest(
                review=ReviewRequest(_place(form), proposed=proposed), focus="proposed"
            )

        return await self._take(request, uuid, look, stays=True)

    async def change(self, request: Request, uuid: str) -> Response:
        """Change a column, or take a change back."""

        async def change(visitor: Visitor, form: Form) -> ViewRequest:
            operation = operation_of(form)
            outcome = await self._service.review.change(
                visitor.who, uuid, operation, _version(form), key=key_of(form, operation)
            )
            return ViewRequest(review=ReviewRequest(_place(form)), announcement=_done(outcome))

        return await self._take(request, uuid, change)

    async def export(
        self,
        request: Request,
        uuid: str,
        rows: Annotated[RowFilter, Query()] = RowFilter.PROBLEMS,
    ) -> Response:
        """Rows to be corrected in a spreadsheet program."""
        visitor = await self._site.visitor(request)
        return ReportDownload(await self._service.review.export(visitor.who, uuid, rows))

    async def upload(self, request: Request, uuid: str) -> Response:
        """Take a corrected export in."""
        visitor = await self._site.visitor(request)
        try:
            upload = Upload(request, self._service.settings.upload_limit, check_beginning)
            await upload.open()
            self._site.check_csrf(visitor, upload.fields.pop("csrf", None))
            outcome = await self._service.review.upload(visitor.who, uuid, upload)
        except ServiceError as error:
            alert = Alert(error.title, sentence(error))
            return await self._page.answer(
                request, visitor, uuid, ViewRequest(alert=alert), status=error.status
            )
        words = gettext("Nothing differs from what is here.")
        if outcome is not None:
            words = _done(outcome)
        return await self._page.done(request, visitor, uuid, ViewRequest(announcement=words))

    async def _take(
        self,
        request: Request,
        uuid: str,
        do: Callable[[Visitor, Form], Awaitable[ViewRequest]],
        *,
        stays: bool = False,
        saved: Sequence[Operation] = (),
    ) -> Response:
        """Do what a form says; whatever is refused stays on the page to be sent again.

        Args:
            request: With the form.
            uuid: The import.
            do: Raises what is refused.
            stays: Nothing was changed by it.
            saved: What of the grid is saved by the time that something is refused.
        """
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        try:
            view_request = await do(visitor, form)
        except ServiceError as error:
            if not (saved or isinstance(error, _REFUSALS)):
                raise
            kept = Corrected() if isinstance(error, _LOST) else corrected(form).without(saved)
            alert = _alert(error, saved, kept)
            view_request = ViewRequest(review=ReviewRequest(_place(form), kept), alert=alert)
            return await self._page.answer(
                request, visitor, uuid, view_request, status=error.status
            )
        if stays:
            return await self._page.answer(request, visitor, uuid, view_request)
        return await self._page.done(request, visitor, uuid, view_request)


def _version(form: Form) -> int:
    version = form.whole("version")
    if version is None:
        raise Refused(gettext("the form is incomplete; load the page again"))
    return version


def _place(form: Form) -> RowsPlace:
    return place_of(form.text("place")) or FIRST_ROWS


def _done(outcome: ChangeEffect) -> str:
    rows = counted("%(count)s row", "%(count)s rows", outcome.changed_rows)
    return counted(
        "%(count)s cell changed in %(rows)s.",
        "%(count)s cells changed in %(rows)s.",
        outcome.changed_cells,
        rows=rows,
    )


def _alert(error: ServiceError, saved: Sequence[Operation], kept: Corrected) -> Alert:
    """What was refused, what of the form is saved all the same, and what is not."""
    sentences = [sentence(error)]
    if saved:
        sentences.append(
            gettext("Saved before that: %(what)s.", what=", ".join(map(in_words, saved)))
        )
    if left := kept.operations():
        sentences.append(
            gettext(
                "Not saved yet: %(what)s; it is still on this page, beside what stands there "
                "now. Save again.",
                what=", ".join(map(in_words, left)),
            )
        )
    elif saved or isinstance(error, Conflict):
        sentences.append(
            gettext("What you asked for was not done; look at the rows and try again.")
        )
    if isinstance(error, Conflict):
        return Alert(gettext("Another person was faster"), " ".join(sentences), "warn")
    # A mistake of one's own is seen in the form itself.
    return Alert(error.title, " ".join(sentences) if saved else sentences[0])
