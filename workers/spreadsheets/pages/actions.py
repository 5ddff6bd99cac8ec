"""Other actions on an import: reassign, retry, cancel, undo, decisions, values as a file."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import Field, ValidationError

from workers.shared.gateway.access import TheAct
from workers.shared.gateway.http.upload import Upload
from workers.shared.gateway.pages.renderer import counted, gettext, is_fragment
from workers.shared.gateway.pages.site import Alert, Form, Site, Visitor, read_form, sentence
from workers.shared.services.errors import Conflict, Forbidden, Refused, ServiceError, WrongState
from workers.spreadsheets.http import ReportDownload
from workers.spreadsheets.pages import import_pages, labels
from workers.spreadsheets.pages.import_pages import ImportPage, ViewRequest, panel_of
from workers.spreadsheets.pages.mapping import (
    KEPT,
    LEFT_OUT,
    Choice,
    Target,
    Trail,
    cell_decisions,
    choices_of,
    column_decisions,
    is_id,
    rule_of,
    shown,
    taken_away,
    turned,
    unsaved,
)
from workers.spreadsheets.pages.review_panel import operation_words
from workers.spreadsheets.runs import StillOpen
from workers.spreadsheets.service import SpreadsheetService
from workers.spreadsheets.upload_form import check_beginning, refused_if_invalid
from workflows.spreadsheets.mappings import CellDecision, Layout
from workflows.spreadsheets.names import QUESTIONS
from workflows.spreadsheets.reviews import Constant, Operation, Replace

_TRAIL_PAGE: Final = 50


_MOST_LINES: Final = 1_000
"""Rows that a person ticks to take them back."""


class HandlingPages:
    """The buttons around an import."""

    def __init__(self, site: Site, service: SpreadsheetService, page: ImportPage) -> None:
        self._site = site
        self._service = service
        self._page = page

    async def cancel(self, request: Request, uuid: str) -> Response:
        """End an import."""
        visitor, form = await self._form(request)
        reason = form.text("reason", 500) or None
        return await self._do(
            request, visitor, uuid, self._service.cancel(visitor.who, uuid, reason)
        )

    async def retry(self, request: Request, uuid: str) -> Response:
        """Try a step again."""
        visitor, _ = await self._form(request)
        return await self._do(request, visitor, uuid, self._service.retry(visitor.who, uuid))

    async def reassign(self, request: Request, uuid: str) -> Response:
        """Reassign the import to another person."""
        visitor, form = await self._form(request)
        to = form.text("to", 200)
        if not to:
            raise Refused(gettext("enter the person to reassign the upload to"))
        notify = form.text("notify", 320) or None
        order = self._service.reassign(visitor.who, uuid, to, notify)
        return await self._do(
            request,
            visitor,
            uuid,
            order,
            ViewRequest(announcement=gettext("Reassigned to %(who)s.", who=to)),
        )

    async def undo(self, request: Request, act: TheAct, uuid: str) -> Response:
        """Undo an import, or the rows of it that a person has ticked."""
        visitor, form = await self._form(request)
        lines = form.text("lines", _MOST_LINES * 8).split()
        if not all(map(is_id, lines)):
            raise Refused(gettext("a line is a whole number"))
        act.after = {"lines": lines or "all"}
        order = self._service.undo(visitor.who, uuid, [int(line) for line in lines])
        return await self._do(
            request, visitor, uuid, order, ViewRequest(focus="panel", undoing=True)
        )

    async def undo_preview(
        self,
        request: Request,
        uuid: str,
        line: Annotated[
            list[Annotated[int, Field(ge=1)]] | None, Query(max_length=_MOST_LINES)
        ] = None,
        ticked: bool = False,
    ) -> Response:
        """What an undo would do now: of the whole import, or of some rows of the file."""
        visitor = await self._site.visitor(request)
        row = await self._service.get(visitor.who, uuid)
        if ticked and not line:
            raise Refused(gettext("tick the rows that are to be undone"))
        undo = await self._service.preview_undo(visitor.who, uuid, line or ())
        template = "undo_plan.html" if is_fragment(request) else "undo_preview.html"
        return self._site.page(request, visitor, template, row=row, undo=undo, lines=line or ())

    async def report(self, request: Request, uuid: str) -> Response:
        """The error report, as a file."""
        visitor = await self._site.visitor(request)
        return ReportDownload(await self._service.report(visitor.who, uuid))

    async def decisions(
        self,
        request: Request,
        uuid: str,
        page: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    ) -> Response:
        """Who decided what."""
        visitor = await self._site.visitor(request)
        service = self._service
        row = await service.get(visitor.who, uuid)
        titles: dict[str, str] = {}
        if row.purged_at is None:
            titles = {field.name: field.title for field in await service.fields(visitor.who, uuid)}
            titles |= {name: each.title for name, each in QUESTIONS.items()}
        found = await service.decisions(visitor.who, uuid, page=page, size=_TRAIL_PAGE)
        return self._site.page(
            request,
            visitor,
            "decisions.html",
            row=row,
            found=found,
            titles=titles,
            page=page,
            size=_TRAIL_PAGE,
        )

    async def _form(self, request: Request) -> tuple[Visitor, Form]:
        visitor = await self._site.visitor(request)
        return visitor, await self._site.form(request, visitor)

    async def _do(
        self,
        request: Request,
        visitor: Visitor,
        uuid: str,
        order: Awaitable[object],
        view_request: ViewRequest | None = None,
    ) -> Response:
        try:
            await order
        except (Refused, WrongState) as error:
            alert = Alert(error.title, sentence(error))
            return await self._page.answer(
                request, visitor, uuid, ViewRequest(alert=alert), status=error.status
            )
        return await self._page.done(request, visitor, uuid, view_request)


class ValueFilePages:
    """Download and upload of values."""

    def __init__(self, site: Site, service: SpreadsheetService, page: ImportPage) -> None:
        self._site = site
        self._service = service
        self._page = page

    async def export(
        self, request: Request, uuid: str, open: Annotated[bool, Query()] = False
    ) -> Response:
        """The values, to be filled in."""
        visitor = await self._site.visitor(request)
        files = self._service.value_files
        return ReportDownload(await files.export(visitor.who, uuid, only_open=open))

    async def upload(self, request: Request, uuid: str) -> Response:
        """Take the meanings of a filled-in file."""
        visitor = await self._site.visitor(request)
        try:
            upload = Upload(request, self._service.settings.upload_limit, check_beginning)
            await upload.open()
            self._site.check_csrf(visitor, upload.fields.pop("csrf", None))
            found = await self._service.value_files.upload(visitor.who, uuid, upload)
        except ServiceError as error:
            alert = Alert(error.title, sentence(error))
            return await self._page.answer(
                request, visitor, uuid, ViewRequest(alert=alert), status=error.status
            )
        answered = counted("%(count)s value answered.", "%(count)s values answered.", found.values)
        alert = Alert(gettext("Taken from the file"), answered, "good")
        return await self._page.answer(request, visitor, uuid, ViewRequest(alert=alert))


_PAGE_SIZE: Final = 50
_ADDRESS: Final = "/uploads/memory"


def details_of(operation: Operation) -> str:
    """What a change puts where, so that two of one column can be distinguished."""
    match operation:
        case Replace(find=find, put=put):
            return " " + gettext("(“%(find)s” by “%(put)s”)", find=find, put=put)
        case Constant(value=value):
            return f" (“{value}”)"
        case _:
            return ""


def _of_files(headers: Sequence[str]) -> str:
    """Which files a change is suggested for that is about no column."""
    if not headers:
        return ""
    return " " + gettext("in files with the headers %(headers)s", headers=", ".join(headers))


class MemoryPages:
    """Headers and values that people decided about."""

    def __init__(self, site: Site, service: SpreadsheetService) -> None:
        self._site = site
        self._service = service

    async def show(
        self,
        request: Request,
        show: Annotated[str, Query(pattern="^(columns|values|changes)$")] = "columns",
        q: Annotated[str, Query(max_length=200)] = "",
        page: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    ) -> Response:
        """What was learnt of headers, or of values."""
        visitor = await self._site.visitor(request)
        memory = self._service.memory
        if show == "changes":
            return await self._show_changes(request, visitor, page)
        ask = memory.columns if show == "columns" else memory.values
        found = await ask(visitor.who, query=q, page=page, size=_PAGE_SIZE)
        return self._site.page(
            request,
            visitor,
            "memory.html",
            found=found,
            show=show,
            query=q,
            page=page,
            size=_PAGE_SIZE,
            left_out=LEFT_OUT,
            types={each.name: each for each in await self._service.types()},
        )

    async def change(self, request: Request) -> Response:
        """Correct or forget one of them."""
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        if form.text("show") == "values":
            await self._change_value(visitor, form)
            return RedirectResponse(f"{_ADDRESS}?show=values", 303)
        if form.text("show") == "changes":
            await self._service.memory.forget_edit(
                visitor.who, form.whole("organisation"), form.text("type"), form.text("key")
            )
            return RedirectResponse(f"{_ADDRESS}?show=changes", 303)
        await self._change_column(visitor, form)
        return RedirectResponse(_ADDRESS, 303)

    async def _show_changes(self, request: Request, visitor: Visitor, page: int) -> Response:
        titles = {
            field.name: field.title for kind in await self._service.types() for field in kind.fields
        }
        found = await self._service.memory.edits(visitor.who, page=page, size=_PAGE_SIZE)
        return self._site.page(
            request,
            visitor,
            "memory.html",
            found=found,
            show="changes",
            query="",
            page=page,
            size=_PAGE_SIZE,
            sentences=[
                operation_words(each.operation, each.headers, titles)
                + details_of(each.operation)
                + _of_files(each.file_headers)
                for each in found.items
            ],
            types={each.name: each for each in await self._service.types()},
        )

    async def _change_column(self, visitor: Visitor, form: Form) -> None:
        memory, who = self._service.memory, visitor.who
        organisation, kind, header = form.whole("organisation"), form.text("type"), form.text("key")
        if form.text("do") == "forget":
            await memory.forget_column(who, organisation, kind, header)
            return
        target = form.text("target")
        chosen = None if target == LEFT_OUT else target
        await memory.learn_column(who, organisation, kind, header, chosen)

    async def _change_value(self, visitor: Visitor, form: Form) -> None:
        memory, who = self._service.memory, visitor.who
        organisation, kind, value = form.whole("organisation"), form.text("type"), form.text("key")
        field = form.text("field")
        if form.text("do") == "forget":
            await memory.forget_value(who, organisation, kind, field, value)
            return
        empty = form.text("do") == "empty"
        name = form.text("target")
        if not name and not empty:
            raise Refused(gettext("enter the name of what the value means, or leave it empty"))
        await memory.learn_value(who, organisation, kind, field, value, None if empty else name)


_CANDIDATES: Final = 12


@dataclass(frozen=True, slots=True)
class Sent:
    """A mapping form as it came in."""

    uuid: str
    visitor: Visitor
    form: Form
    choices: Mapping[int, Choice]
    panel: str
    """That the form stands on."""

    @property
    def version(self) -> int:
        """Of the mappings that the person saw.

        Raises:
            Refused: The form does not name one.
        """
        version = self.form.whole("version")
        if version is None:
            raise Refused(gettext("the form is incomplete; load the page again"))
        return version


class DecisionPages:
    """The forms of both mapping panels."""

    def __init__(self, site: Site, service: SpreadsheetService, page: ImportPage) -> None:
        self._site = site
        self._service = service
        self._page = page

    async def columns(self, request: Request, uuid: str) -> Response:
        """Save choices of columns; confirm them or start, if that was wanted."""
        return await self._take(request, uuid, "columns", self._save_columns)

    async def rows(self, request: Request, uuid: str) -> Response:
        """Keep rows, or leave them out."""
        return await self._take(request, uuid, "columns", self._save_rows)

    async def values(self, request: Request, uuid: str) -> Response:
        """Save choices of values; confirm them or turn the page, if that was wanted."""
        return await self._take(request, uuid, "values", self._save_values)

    async def layout(self, request: Request, uuid: str) -> Response:
        """Read the file in another way."""
        return await self._take(request, uuid, "columns", self._change_layout)

    async def candidates(
        self,
        request: Request,
        uuid: str,
        field: Annotated[str, Query(max_length=64)],
        value: Annotated[int | None, Query(ge=0)] = None,
        q: Annotated[str, Query(max_length=200)] = "",
    ) -> Response:
        """What a value may mean, as choices beside it; without one, the list that there is."""
        visitor = await self._site.visitor(request)
        query = q.strip()
        found = await self._service.candidates(visitor.who, uuid, field, query)
        if value is None:
            target = Target(field, "", found)
            return self._site.page(request, visitor, "target_list.html", target=target, query=query)
        return self._site.page(
            request,
            visitor,
            "candidates.html",
            found=found[:_CANDIDATES],
            more=len(found) > _CANDIDATES,
            value=value,
            query=query,
        )

    async def _take(
        self,
        request: Request,
        uuid: str,
        panel: str,
        save: Callable[[Sent], Awaitable[ViewRequest]],
    ) -> Response:
        """Do what a form says; whatever is refused stays on the page to be sent again."""
        visitor = await self._site.visitor(request)
        form = await read_form(request)
        sent = Sent(uuid, visitor, form, choices_of(form, panel.removesuffix("s")), panel)
        try:
            self._site.check_csrf(visitor, form.text("csrf"))
            view_request = await save(sent)
        except (Forbidden, Refused, Conflict, StillOpen, WrongState) as error:
            view_request = await self._refused(sent, error)
            return await self._page.answer(
                request, visitor, uuid, view_request, status=error.status
            )
        return await self._page.done(request, visitor, uuid, view_request)

    async def _save_columns(self, sent: Sent) -> ViewRequest:
        service, who, uuid, version = self._service, sent.visitor.who, sent.uuid, sent.version
        choices = {**sent.choices, **_picked(sent)}
        columns = (await service.columns(who, uuid)).columns
        decisions = column_decisions(columns, choices)
        if decisions:
            version = (await service.update_columns(who, uuid, decisions, version)).version
        match sent.form.text("do"):
            case "confirm" | "incomplete" | "start" if taken := taken_away(columns, decisions):
                return ViewRequest(alert=_look_again(taken))
            case "confirm" | "incomplete" as word:
                incomplete = word == "incomplete"
                answer = await service.confirm_columns(who, uuid, version, incomplete=incomplete)
                return ViewRequest(focus="panel", confirmed=answer.version)
            case "start":
                answer = await service.start(who, uuid, version)
                return ViewRequest(focus="panel", confirmed=answer.version)
            case _:
                return ViewRequest(announcement=_saved(len(decisions)))

    async def _save_rows(self, sent: Sent) -> ViewRequest:
        service, who, version = self._service, sent.visitor.who, sent.version
        choices = choices_of(sent.form, "row")
        changed = {line: each.chosen == KEPT for line, each in choices.items() if each.changed}
        for keep in (True, False):
            if lines := [line for line, kept in changed.items() if kept is keep]:
                answer = await service.decide_rows(who, sent.uuid, lines, version, keep=keep)
                version = answer.version
        return ViewRequest(announcement=_saved(len(changed)))

    async def _save_values(self, sent: Sent) -> ViewRequest:
        service, who, uuid, version = self._service, sent.visitor.who, sent.uuid, sent.version
        cells = await import_pages.chosen_cells(service, who, uuid, sent.choices)
        decisions = cell_decisions(cells, sent.choices)
        rule = rule_of(sent.form)
        rules = () if rule is None else (rule,)
        if decisions or rules:
            answer = await service.update_cells(who, uuid, decisions, version, rules=rules)
            version = answer.version
            if rules:
                words = _left(answer.cells.open)
                return ViewRequest(values=shown(sent.form), announcement=words)
        if (of_all := _of_all(sent.form)) is not None:
            answer = await service.update_cells(who, uuid, [of_all], version)
            words = _left(answer.cells.open)
            return ViewRequest(values=shown(sent.form), announcement=words)
        if sent.form.text("do") == "confirm":
            await service.confirm_cells(who, uuid, version)
            return ViewRequest(focus="panel")
        place = turned(sent.form)
        words = _saved(len(decisions))
        if not decisions and place.wanted != shown(sent.form).wanted:
            counts = await service.cell_counts(who, uuid, place.wanted)
            words = counted("%(count)s value.", "%(count)s values.", sum(counts.values()))
        return ViewRequest(values=place, announcement=words)

    async def _change_layout(self, sent: Sent) -> ViewRequest:
        row = await self._service.get(sent.visitor.who, sent.uuid)
        layout = _layout(sent.form, row.layout or Layout())
        await self._service.change_layout(sent.visitor.who, sent.uuid, layout, sent.version)
        return ViewRequest(focus="panel")

    async def _refused(self, sent: Sent, error: ServiceError) -> ViewRequest:
        """What to show when a form was not taken: why, and what the person had chosen."""
        row = await self._service.get(sent.visitor.who, sent.uuid)
        if panel_of(row) != sent.panel:
            items = unsaved(sent.form, sent.panel, sent.choices)
            by = await self._latest(sent)
            announcement = gettext("%(who)s has continued this upload", who=by)
            announcement += f". {sentence(error)}"
            if items:
                announcement += " " + gettext("Of what you chose, this was not saved:")
            return ViewRequest(alert=Alert(error.title, announcement, "warn", items))
        return ViewRequest(
            values=shown(sent.form),
            choices={**sent.choices, **_picked(sent)},
            alert=await self._alert(sent, error),
        )

    async def _alert(self, sent: Sent, error: ServiceError) -> Alert:
        if isinstance(error, Conflict):
            return Alert(
                gettext("%(who)s was faster", who=await self._latest(sent)),
                gettext(
                    "The mappings have changed since you loaded them, so nothing was saved yet. "
                    "What has changed is marked below, and your own choices are still selected: "
                    "look at them and save again."
                ),
                "warn",
            )
        if isinstance(error, StillOpen):
            saved = gettext("Your choices are saved, but %(problem)s.", problem=error)
            return Alert(gettext("Not yet"), saved, "warn")
        return Alert(error.title, sentence(error))

    async def _latest(self, sent: Sent) -> str:
        found = await self._service.decisions(sent.visitor.who, sent.uuid, size=1)
        return Trail(found.items).latest()


def _look_again(headers: tuple[str, ...]) -> Alert:
    return Alert(
        gettext("Saved, but look once more"),
        gettext(
            "A field that you chose belonged to another column. That column means nothing now; "
            "if this is right, confirm again."
        ),
        "warn",
        headers,
    )


def _saved(count: int) -> str:
    if not count:
        return gettext("Nothing was changed.")
    return counted("Saved %(count)s choice.", "Saved %(count)s choices.", count)


def _left(count: int) -> str:
    return counted("%(count)s open value left.", "%(count)s open values left.", count)


def _picked(sent: Sent) -> Mapping[int, Choice]:
    """A suggestion that was taken without a script: `3:LAST_NAME`."""
    id, _, field = sent.form.text("pick").partition(":")
    if not field or not is_id(id) or int(id) not in sent.choices:
        return {}
    return {int(id): Choice(field, sent.choices[int(id)].seen)}


def _of_all(form: Form) -> CellDecision | None:
    """The same answer for every open question of a kind: `all:12:confirm`."""
    word, _, rest = form.text("do").partition(":")
    id, _, answer = rest.partition(":")
    if word != "all" or not is_id(id) or answer not in ("confirm", "create", "ignore"):
        return None
    with refused_if_invalid():
        return CellDecision.model_validate({"id": int(id), answer: True, "for_all": True})


def _layout(form: Form, before: Layout) -> Layout:
    """How the file is to be read; what a form does not ask about stays as it is.

    Raises:
        Refused: It is invalid.
    """
    sheet = form.text("sheet") or before.sheet
    line = form.whole("headerLine")
    if sheet != before.sheet and line == before.header_line:
        # The line was found on the other sheet.
        line = None
    delimiter = labels.DELIMITERS.get(form.text("delimiter"))
    try:
        return Layout(
            sheet=sheet,
            encoding=form.text("encoding") or None,
            delimiter=delimiter.character if delimiter else None,
            header_line=None if form.text("noHeader") else line,
            no_header=bool(form.text("noHeader")),
        )
    except ValidationError as error:
        raise Refused(
            gettext("the file cannot be read in that way: check the line of the headers")
        ) from error
