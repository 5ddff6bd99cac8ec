"""What the page of a run shows of a document import, and takes as answers to it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from activities.imports.looks import DocumentLook, LookedColumn
from activities.imports.views import ImportTaskRow
from workers.imports.api import changes_of, read_map
from workers.imports.service import LARGEST_FILE, PIPELINE, ImportService
from workers.shared.gateway.pages.mapping import LEFT_OUT, OPEN, ColumnLine, field_options
from workers.shared.gateway.pages.renderer import N_, gettext, number
from workers.shared.gateway.pages.site import (
    Fact,
    Form,
    RunPart,
    Visitor,
    facts_part,
    sentence,
)
from workers.shared.services.errands import ErrandService
from workers.shared.services.errors import Refused, ServiceError
from workers.shared.services.run_service import RunDetails
from workers.shared.text import Label
from workflows.imports.messages import (
    AnyTableMessage,
    DeclaredMessage,
    FileMessage,
    ImportMessage,
    TableMessage,
)
from workflows.shared.titles import title_key

_SEEN: Final = "seen_column-"
_TICKED: Final = "keep-"
_KEPT: Final = "kept-"
_LONGEST: Final = 500_000
"""Characters of what a message maps."""
_TAKING_FILES: Final = "retry"
_LEFT_OUT_ROW: Final = "left out: "
"""What the problem of a row that would be left out begins with."""


class DocumentParts:
    """Shows what is known of an import beside its row, and what it asks.

    Args:
        service: Of imports.
        errands: Ask workers, which read documents.
    """

    def __init__(self, service: ImportService, errands: ErrandService) -> None:
        self._service = service
        self._errands = errands

    async def parts(
        self, visitor: Visitor, found: RunDetails, form: Form | None
    ) -> Sequence[RunPart]:
        """What it asks, if it waits, and the document with its message."""
        if not found.details:
            return ()
        id = found.run.answers_at
        row, message = await self._service.document(visitor.who, id)
        answers, look, unseen = found.details["answers"], None, ""
        if _TAKING_FILES in answers and isinstance(message, AnyTableMessage):
            try:
                given = await self._errands.ask(visitor.who, PIPELINE, "look", {"id": id})
                look = DocumentLook.model_validate(given)
            except ServiceError as error:
                unseen = sentence(error)
        parts = [*facts_part(N_("Document"), _facts(row, message), look.rows if look else ())]
        if _TAKING_FILES in answers:
            asked = _asked(found, message, look, form)
            part = {**asked, "unseen": unseen}
            parts.append(RunPart("document_answers.html", part, asks=True))
        return parts


def _asked(
    found: RunDetails, message: ImportMessage | None, look: DocumentLook | None, form: Form | None
) -> Mapping[str, Any]:
    typed: Mapping[str, str] = form.fields if form else {}
    question = found.details["question"]
    is_about_rows = question is not None and question["field"] == "left_out"
    kept = message.keep_lines if isinstance(message, TableMessage) else ()
    return {
        "id": found.run.answers_at,
        "question": question,
        "rows": _rows_left_out(found, typed) if is_about_rows else (),
        "kept": kept,
        "lines": () if look is None or look.line is None else _lines(look, message, typed),
        "names": [] if look is None else [each.name for each in look.columns],
        "map": message.map if isinstance(message, TableMessage) else {},
        "look": look,
        "sheet": typed.get("sheet", look.sheet if look else "") or "",
        "encoding": typed.get("encoding", ""),
        "has_file": message is None or hasattr(message, "blob_name"),
        "limit": LARGEST_FILE,
    }


def _rows_left_out(found: RunDetails, typed: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
    """The rows that would be left out, as far as the row of the import lists them."""
    rows: list[Mapping[str, Any]] = []
    for each in found.details["problems"]:
        if each["line"] is None or not each["reason"].startswith(_LEFT_OUT_ROW):
            continue
        place = f"{each['sheet']}!{each['line']}" if each["sheet"] else f"{each['line']}"
        ticked = typed.get(f"{_TICKED}{len(rows)}") == place
        rows.append({**each, "place": place, "ticked": ticked})
    return rows


def _lines(
    look: DocumentLook, message: ImportMessage | None, typed: Mapping[str, str]
) -> Sequence[ColumnLine]:
    """The table of columns; choices of a form that was not taken are kept."""
    mapped = {
        title_key(name) for name in (message.map if isinstance(message, TableMessage) else ())
    }
    holders = {
        each.field: (number, each.title)
        for number, each in enumerate(look.columns)
        if each.field not in (OPEN, LEFT_OUT) and not each.missing
    }
    return [
        ColumnLine(
            number,
            each.title,
            each.samples,
            _status(each, mapped),
            each.field,
            typed.get(f"column-{number}", each.field),
            field_options(look.fields, number, holders),
            each.field == OPEN,
            note=gettext("This sheet has no such column.") if each.missing else "",
        )
        for number, each in enumerate(look.columns)
    ]


def _status(column: LookedColumn, mapped: set[str]) -> Label:
    if column.field == LEFT_OUT:
        return Label(N_("Left out"))
    if column.field == OPEN or column.missing:
        return Label(N_("Open"), "warn")
    if title_key(column.name) in mapped:
        return Label(N_("Chosen"), "info")
    return Label(N_("Matched"), "good")


def _facts(row: ImportTaskRow | None, message: ImportMessage | None) -> Sequence[Fact]:
    """What came in, and what its message says of it."""
    facts: list[Fact] = []

    def add(name: str, value: Any) -> None:
        facts.append(Fact(name, "" if value is None else f"{value}"))

    if row is not None:
        add(N_("Type"), row.document_type.replace("_", " "))
        add(N_("Task"), row.task_id)
        add(N_("File"), row.filename or row.source_name)
        size = row.source_size
        add(N_("Size"), None if size is None else gettext("%(size)s bytes", size=number(size)))
        add(N_("SHA-256"), row.source_sha256)
        add(N_("Strategy"), row.strategy)
    if isinstance(message, FileMessage):
        add(N_("Stored as"), message.blob_name)
        add(N_("Encoding"), message.encoding)
    if isinstance(message, TableMessage):
        add(N_("Sheet"), message.sheet)
        add(N_("Columns"), ", ".join(f"{title} → {name}" for title, name in message.map.items()))
        add(N_("Lines to keep"), ", ".join(message.keep_lines))
    if isinstance(message, DeclaredMessage):
        add(N_("Belongs to"), ", ".join(f"{name} {text}" for name, text in message.scope.items()))
    if row is not None:
        add(N_("Note"), row.note)
        for each in row.corrections:
            add(N_("Corrected"), f"{each.by or '–'}: {each.changes}")  # noqa: RUF001
    return facts


def changes_in(form: Form) -> Mapping[str, Any]:
    """What a form of the page changes of the message of an import.

    Raises:
        Refused: It is none of those that the page has, or nothing is chosen in it.
    """
    changes: dict[str, Any] = dict(changes_of({**form.fields, "map": ""}))
    if field := form.text("field", 64):
        changes[field] = form.text("value", 1_000)
    if form.text("keep", 20):
        if not (ticked := _values(form, _TICKED)):
            raise Refused(gettext("tick the rows to keep, or leave all of them out"))
        changes["keep_lines"] = [*_values(form, _KEPT), *ticked]
    if any(name.startswith(_SEEN) for name in form.fields):
        mapped = _mapped(form, read_map(form.text("map", _LONGEST) or "{}"))
        changes |= {"map": mapped} if mapped else {}
    return changes


def _values(form: Form, prefix: str) -> Sequence[str]:
    return [text for name, text in form.fields.items() if name.startswith(prefix)]


def _mapped(form: Form, before: Mapping[str, str]) -> Mapping[str, str]:
    """What the choices of the form change of what the message maps.

    A column whose field another column takes is left out.
    """
    chosen: dict[str, str] = {}
    for name in form.fields:
        place = name.removeprefix(_SEEN)
        if name != place and (text := form.text(f"column-{place}")) != form.text(name):
            chosen[form.text(f"name_column-{place}")] = text or LEFT_OUT
    again = {title_key(name) for name in chosen}
    lost = {
        name: LEFT_OUT
        for name, field in before.items()
        if field in chosen.values() and title_key(name) not in again
    }
    return {**lost, **chosen}
