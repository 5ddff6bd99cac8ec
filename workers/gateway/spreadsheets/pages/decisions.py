"""What people decide about columns and values."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Query, Request, Response
from pydantic import ValidationError

from contracts.spreadsheets import CellDecision, Layout
from workers.gateway.pages.forms import Form, read_form
from workers.gateway.pages.language import counted, gettext
from workers.gateway.pages.site import Alert, Site, Visitor, sentence
from workers.gateway.spreadsheets.pages import labels, panels
from workers.gateway.spreadsheets.pages.forms import (
    KEPT,
    Choice,
    cell_decisions,
    choices_of,
    column_decisions,
    taken_away,
)
from workers.gateway.spreadsheets.pages.import_page import ImportPage, ViewRequest, panel_of
from workers.gateway.spreadsheets.pages.lines import Trail, unsaved
from workers.gateway.spreadsheets.pages.value_place import rule_of, shown, turned
from workers.services.errors import (
    Conflict,
    Forbidden,
    Refused,
    ServiceError,
    WrongState,
)
from workers.services.spreadsheets.errors import StillOpen
from workers.services.spreadsheets.service import SpreadsheetService

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
        value: Annotated[int, Query(ge=0)],
        q: Annotated[str, Query(max_length=200)] = "",
    ) -> Response:
        """What a value may mean, as choices beside it."""
        visitor = await self._site.visitor(request)
        query = q.strip()
        found = await self._service.candidates(visitor.who, uuid, field, query)
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
        cells = await panels.chosen_cells(service, who, uuid, sent.choices)
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
            announcement = gettext("%(who)s has continued this import", who=by)
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
    if not field or not id.isdecimal() or int(id) not in sent.choices:
        return {}
    return {int(id): Choice(field, sent.choices[int(id)].seen)}


def _of_all(form: Form) -> CellDecision | None:
    """The same answer for every open question of a kind: `all:12:confirm`."""
    word, _, rest = form.text("do").partition(":")
    id, _, answer = rest.partition(":")
    if word != "all" or not id.isdecimal() or answer not in ("confirm", "create", "ignore"):
        return None
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
