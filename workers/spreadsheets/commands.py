"""`docflow upload`: spreadsheets whose import pauses for a person."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import typer

from workers.shared.cli.answers import EncodingOption, SheetOption, pairs_of
from workers.shared.cli.errors import UsageError, stop
from workers.shared.cli.output import output_file, state_text
from workers.shared.cli.progress import sent
from workers.shared.cli.remote import (
    Column,
    Item,
    LimitOption,
    Output,
    OutputOption,
    ask,
    gateway,
    listed,
    show_list,
    show_one,
)
from workers.shared.cli.runs import words
from workers.shared.text import one_line
from workflows.spreadsheets.mappings import Outcome, SpreadsheetState, UndoState

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _read_uuid(given: str) -> str:
    try:
        return str(UUID(given.strip().rpartition("/")[2]))
    except ValueError:
        stop(UsageError(f"{given!r} is not the UUID of an upload; `docflow upload list` has them"))


UuidArgument = Annotated[
    str, typer.Argument(metavar="UUID", callback=_read_uuid, help="UUID, or workflow id.")
]
DelimiterOption = Annotated[
    str | None, typer.Option(help="Between the fields of a text file; `tab` for a tab.")
]
HeaderLineOption = Annotated[
    int | None, typer.Option(min=1, help="Line of the header; found out if absent.")
]
NoHeaderOption = Annotated[
    bool, typer.Option("--no-header", help="There is no header: columns are called by letters.")
]
ConfirmOption = Annotated[
    list[int] | None, typer.Option(metavar="ID", help="The match is right; may be repeated.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace a file that exists.")]

_ALL: Final = "/api/v1/uploads"
_ONE: Final = f"{_ALL}/{{}}"
_SAMPLES: Final = 3
_KEPT_VERSION: Final = (
    "the type has changed since, and this upload keeps the version that it began with; to use the "
    "newest one, cancel the upload if it is open, and upload the file again"
)
_Parse = Callable[[str], object]
_Given = Iterable[tuple[int, Item]]
"""Ids with what is decided about each."""


@app.command()
def submit(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="The spreadsheet."),
    ],
    import_type: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="`docflow upload types` lists them.")
    ],
    organisation: Annotated[
        int | None, typer.Option(min=1, metavar="ID", help="Whose rows they are [your first].")
    ] = None,
    belongs_to: Annotated[
        int | None,
        typer.Option(
            "--context", min=1, metavar="ID", help="Event, membership period or race of the rows."
        ),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="What all rows of a declared type share."),
    ] = None,
    auto_start: Annotated[
        bool, typer.Option("--auto-start", help="Go straight through when nothing is open.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check every row and write nothing.")
    ] = False,
    review: Annotated[
        bool,
        typer.Option("--review", help="Stop where rows can be corrected before any is written."),
    ] = False,
    sheet: SheetOption = None,
    encoding: EncodingOption = None,
    delimiter: DelimiterOption = None,
    header_line: HeaderLineOption = None,
    no_header: NoHeaderOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Upload a spreadsheet and start its import.

    \b
    Examples:
      docflow upload submit registrations.xlsx --type EVENT_PARTICIPANT --context 7
      docflow upload submit members.csv --type MEMBERSHIP --context 3 --auto-start --dry-run
      docflow upload submit tools.xlsx --type tools --organisation 1 --scope project_id=P1
    """
    from docflow.client.protocol import Request, new_key

    fields = {
        "import_type": import_type,
        "organisation_id": organisation,
        "context_id": belongs_to,
        **{f"scope.{name}": value for name, value in pairs_of("--scope", scope or ()).items()},
        "auto_start": auto_start or None,
        "dry_run": dry_run or None,
        "review": review or None,
        **_layout(sheet, encoding, delimiter, header_line, no_header=no_header),
    }
    with gateway(context) as connection:
        with sent(file) as content:
            form = Request("POST", _ALL, body=fields, files={"file": content}, key=new_key())
            made = connection.carry_out(form)
        if output is Output.TABLE:
            shown = f"see `docflow upload show {made['uuid']}`"
            typer.echo(one_line(f"{made['filename']} is upload {made['uuid']}; {shown}"))
        else:
            show_one(made, output, {}, name="uuid")


def _layout(
    sheet: str | None,
    encoding: str | None,
    delimiter: str | None,
    header_line: int | None,
    *,
    no_header: bool,
) -> Mapping[str, object]:
    """How a file is to be read, as far as it is given."""
    given = {
        "sheet": sheet,
        "encoding": encoding,
        "delimiter": delimiter,
        "header_line": header_line,
        "no_header": no_header or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _state(upload: Item) -> object:
    return state_text(upload["state"])


def _awaited(upload: Item) -> object:
    return upload["assignee"] if upload["waiting_since"] else None


@app.command("list")
def list_uploads(
    context: typer.Context,
    organisation: Annotated[
        int | None, typer.Option(min=1, metavar="ID", help="Only uploads of this one.")
    ] = None,
    state: Annotated[
        SpreadsheetState | None, typer.Option(help="Only uploads in this state.")
    ] = None,
    import_type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Only uploads of this type.")
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="Only with this text in the name of the file.")
    ] = None,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """List uploads, the newest first.

    \b
    Examples:
      docflow upload list --state CELL_MAPPING
      docflow upload list --organisation 1 -o json
    """
    wanted = {"organisation_id": organisation, "import_type": import_type}
    with gateway(context) as connection:
        found = listed(connection, _ALL, limit, state=state, text=text, **wanted)
    columns: Mapping[str, Column] = {
        "state": _state,
        "upload": "uuid",
        "type": "import_type",
        "file": "filename",
        "rows": lambda one: one["total"] and f"{one['processed_rows']:,} of {one['total']:,}",
        "waits for": _awaited,
        "changed": "updated_at",
    }
    nothing = "no uploads; `docflow upload submit FILE ...` starts one"
    show_list(found, output, columns, name="uuid", nothing=nothing, numbers=["rows"])
    if len(found) == limit and output is Output.TABLE:
        typer.echo(f"the newest {limit}; --limit shows more", err=True)


@app.command()
def show(
    context: typer.Context,
    uuid: UuidArgument,
    part: Annotated[
        Literal["rows"] | None,
        typer.Argument(
            metavar="PART", help="rows: what became of each, and what is wrong with it."
        ),
    ] = None,
    outcome: Annotated[Outcome | None, typer.Option(help="Only rows with this outcome.")] = None,
    limit: LimitOption = 100,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show one upload in full, and how far its undo is; or its rows.

    \b
    Examples:
      docflow upload show 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1
      docflow upload show 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 rows --outcome ERROR
    """
    if part is not None:
        _rows(context, uuid, outcome, limit, output)
    elif outcome is not None:
        stop(UsageError("--outcome goes with rows"))
    else:
        _upload(context, uuid, output)


def _upload(context: typer.Context, uuid: str, output: Output) -> None:
    from workflows.spreadsheets.reviews import REVIEW

    with gateway(context) as connection:
        found = ask(connection, "GET", _ONE, uuid)
        if found["undo_state"]:
            found["undo"] = ask(connection, "GET", f"{_ONE}/undo", uuid)
        if found["step"] == REVIEW:
            found["review"] = ask(connection, "GET", f"{_ONE}/review", uuid)
        page = f"{connection.address}/uploads/{uuid}"
    rows: Mapping[str, Column] = {
        "upload": "uuid",
        "type": lambda one: one["import_type"] + (", dry run" if one["dry_run"] else ""),
        "version of the type": lambda one: _KEPT_VERSION if one["type_changed"] else None,
        "file": "filename",
        "organisation": "organisation_id",
        "context": lambda one: one["context_name"] or one["context_id"],
        "scope": lambda one: words(one["scope"]),
        "state": _state,
        "step": "step",
        "reason": "reason",
        "waits for": _awaited,
        "open values": lambda one: (
            one["open_values"] and f"{one['open_values']:,} of {one['values_total']:,}"
        ),
        "rows": lambda one: one["total"] and f"{one['total']:,}",
        "outcome": lambda one: ", ".join(f"{n:,} {name}" for name, n in one["counts"].items()),
        "parked rows": "parked",
        "created": "created_at",
        "finished": "finished_at",
        "removed": "purged_at",
        "undo": lambda one: _undone(one["undo"]) if "undo" in one else None,
        "reason of the undo": lambda one: one["undo"]["reason"] if "undo" in one else None,
        "review": lambda one: _reviewed(one["review"]) if "review" in one else None,
        "next step": lambda one: _next_step(one, page),
        "report": lambda one: f"docflow report {one['id']}" if one["has_report"] else None,
        "run": "id",
    }
    left = _left_alone(found["undo"]) if "undo" in found else ()
    show_one(found, output, rows, name="uuid", body="\n".join(left) or None)


def _undone(undo: Item) -> str:
    done = f"{undo['deleted']:,} deleted, {undo['restored']:,} restored"
    return f"{undo['state']}: {done}, {undo['left_alone']:,} left alone"


def _left_alone(undo: Item) -> Iterator[str]:
    """The rows that an undo leaves alone, and why."""
    for each in undo["conflicts"]:
        place = f"row {each['line']}: " if each["line"] else ""
        what = " ".join(filter(None, (each["record"].lower(), each["key"])))
        yield one_line(f"{place}{what} {each['reason']}")
    shown = len(undo["conflicts"])
    if shown < undo["left_alone"]:
        yield f"the first {shown:,} of {undo['left_alone']:,}"


def _reviewed(review: Item) -> str:
    return f"{review['wrong']:,} of {review['rows']:,} rows have a problem"


def _next_step(upload: Item, page: str) -> str | None:
    """What a person can do now."""
    uuid, undo = upload["uuid"], upload.get("undo")
    if undo is not None and undo["state"] == UndoState.RUNNING:
        return f"docflow retry {uuid}" if undo["reason"] else None
    if upload["waiting_since"] is None:
        return None
    if upload["reason"]:
        return f"docflow retry | cancel {uuid}"
    if "review" in upload:
        return (
            f"correct rows at {page}, or by the API; then `docflow upload confirm {uuid} rows`, "
            "which rejects those that still have a problem"
        )
    word = "columns" if upload["state"] == SpreadsheetState.COLUMN_MAPPING else "values"
    return f"`docflow upload {word} {uuid}`, then `docflow upload confirm {uuid} {word}`"


@app.command()
def columns(
    context: typer.Context,
    uuid: UuidArgument,
    targets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="ID=FIELD", help="What a column means; may be repeated."),
    ] = None,
    confirm: ConfirmOption = None,
    ignore: Annotated[
        list[int] | None, typer.Option(metavar="ID", help="Leave it out; may be repeated.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what columns mean, or decide it.

    \b
    Examples:
      docflow upload columns 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1
      docflow upload columns 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 --set 8=CLUB --ignore 9
    """
    decisions = _decisions(
        _targets("target", targets, "FIELD", str), confirm=confirm, ignore=ignore
    )
    path = f"{_ONE}/columns"
    with gateway(context) as connection:
        found = ask(connection, "GET", path, uuid)["items"]
        if decisions:
            answer = ask(connection, "PATCH", path, uuid, body={"decisions": decisions})
            _show_answer({**answer, "lost_fields": _lost(found, decisions)}, output)
            return
    shown: Mapping[str, Column] = {
        "ID": "id",
        "column": "header",
        "means": "target",
        "match": "status",
        "score": lambda one: f"{one['confidence']:.2f}",
        "or": _alternatives,
        "samples": lambda one: ", ".join(one["samples"][:_SAMPLES]),
    }
    nothing = "no columns yet: the file is still being analysed"
    show_list(found, output, shown, name="id", nothing=nothing, numbers=["ID"])


def _lost(before: Sequence[Item], decisions: Sequence[Item]) -> Sequence[Item]:
    """Columns whose field, which they matched by themselves, a decision gave to another one."""
    given = {each.get("target") for each in decisions}
    decided = {each["id"] for each in decisions}
    return [
        {"id": each["id"], "header": each["header"], "field": each["target"]}
        for each in before
        if each["target"] in given and each["target"] and each["id"] not in decided
    ]


@app.command()
def values(
    context: typer.Context,
    uuid: UuidArgument,
    only_open: Annotated[
        bool, typer.Option("--open", help="Only those without a meaning.")
    ] = False,
    targets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="ID=ENTITY", help="What a value means; may be repeated."),
    ] = None,
    confirm: ConfirmOption = None,
    ignore: Annotated[
        list[int] | None,
        typer.Option(metavar="ID", help="The cell counts as empty; may be repeated."),
    ] = None,
    create: Annotated[
        list[int] | None,
        typer.Option(metavar="ID", help="Make a candidate of this name; may be repeated."),
    ] = None,
    reset: Annotated[
        list[int] | None,
        typer.Option(metavar="ID", help="Take the decision back; may be repeated."),
    ] = None,
    for_all: Annotated[
        bool,
        typer.Option(
            "--for-all", help="Answer every open question about people of the same kind as well."
        ),
    ] = False,
    candidates: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD", help="What values of a field may mean instead, the likeliest first."
        ),
    ] = None,
    text: Annotated[str | None, typer.Option(help="With --candidates: part of a name.")] = None,
    limit: LimitOption = 200,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what values mean, or decide it; --candidates shows what there is to choose from.

    About a person, --confirm says that it is the one who is suggested, --create that it is
    another one, --ignore leaves the row out.

    \b
    Examples:
      docflow upload values 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 --open
      docflow upload values 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 --set 3=43 --create 4
      docflow upload values 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 --candidates CLUB --text run
    """
    if candidates is not None:
        _candidates(context, uuid, candidates, text, output)
        return
    flags = {"confirm": confirm, "ignore": ignore, "create": create, "reset": reset}
    decisions = _decisions(_targets("target_id", targets, "ENTITY", int), **flags)
    with gateway(context) as connection:
        path = f"{_ONE.format(uuid)}/values"
        if decisions:
            body = {"decisions": [{**each, "for_all": for_all} for each in decisions]}
            _show_answer(ask(connection, "PATCH", path, body=body), output)
            return
        found = listed(connection, path, limit, status="UNRESOLVED" if only_open else None)
    shown: Mapping[str, Column] = {
        "ID": "id",
        "field": "field",
        "value": "value",
        "rows": lambda one: f"{one['rows']:,}",
        "means": "target_name",
        "match": "status",
        "or": _alternatives,
        "why it is asked": "reason",
    }
    nothing = "no values to be decided"
    show_list(found, output, shown, name="id", nothing=nothing, numbers=["ID", "rows"])
    if len(found) == limit and output is Output.TABLE:
        typer.echo(f"the first {limit}; --limit shows more", err=True)


def _alternatives(one: Item) -> str:
    known = [(each, f", {each['id']}" if each["id"] else "") for each in one["alternatives"]]
    return ", ".join(f"{each['name']} ({each['score']:.2f}{id})" for each, id in known)


def _targets(name: str, given: Iterable[str] | None, what: str, parse: _Parse) -> _Given:
    for each in given or ():
        id, _, target = each.partition("=")
        try:
            yield int(id), {name: parse(target)}
        except ValueError:
            stop(UsageError(f"--set {each!r}: write ID={what}, for example --set 3=43"))


def _decisions(targets: _Given, **flags: Iterable[int] | None) -> Sequence[Item]:
    """Return the decisions about each id; the gateway refuses two about one."""
    made: dict[int, dict[str, Any]] = {}
    for id, target in targets:
        made.setdefault(id, {"id": id}).update(target)
    for name, ids in flags.items():
        for id in ids or ():
            made.setdefault(id, {"id": id})[name] = True
    return [*made.values()]


def _show_answer(answer: Item, output: Output) -> None:
    """Show what an answer changed."""
    if output is not Output.TABLE:
        show_one(answer, output, {}, name="uuid")
        return
    uuid = answer["uuid"]
    typer.echo(f"accepted; {uuid} is {answer['state']}")
    for each in answer.get("lost_fields", ()):
        typer.echo(one_line(f"column {each['id']} {each['header']!r} is no longer {each['field']}"))
    if missing := answer.get("missing_fields"):
        typer.echo(f"no column yet for {', '.join(missing)}")
    if count := answer["open_values"]:
        typer.echo(f"{count:,} values without a meaning: `docflow upload values {uuid} --open`")


def _candidates(
    context: typer.Context, uuid: str, field: str, text: str | None, output: Output
) -> None:
    query = {"field": field, "text": text}
    with gateway(context) as connection:
        found = ask(connection, "GET", f"{_ONE}/candidates", uuid, query=query)["items"]
    shown = {"ENTITY": "id", "name": "name"}
    show_list(found, output, shown, name="id", nothing="no candidates", numbers=["ENTITY"])


@app.command()
def confirm(
    context: typer.Context,
    uuid: UuidArgument,
    what: Annotated[
        Literal["columns", "values", "rows", "all"],
        typer.Argument(metavar="WHAT", help="columns, values, rows of the review, or all of it."),
    ],
    incomplete: Annotated[
        bool,
        typer.Option(
            "--incomplete", help="With columns: required fields are filled in the review."
        ),
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Confirm columns, values or the rows of a review: the import goes on.

    If something required is open, nothing is confirmed.

    \b
    Examples:
      docflow upload confirm 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 columns
      docflow upload confirm 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 all
    """
    body = {"what": what, "incomplete": incomplete}
    with gateway(context) as connection:
        _show_answer(ask(connection, "POST", f"{_ONE}/confirm", uuid, body=body), output)


@app.command()
def change(
    context: typer.Context,
    uuid: UuidArgument,
    to: Annotated[
        str | None, typer.Option(metavar="PERSON", help="Who has to answer from now on.")
    ] = None,
    notify: Annotated[
        str | None, typer.Option(metavar="MAIL", help="With --to: their address.")
    ] = None,
    sheet: SheetOption = None,
    encoding: EncodingOption = None,
    delimiter: DelimiterOption = None,
    header_line: HeaderLineOption = None,
    no_header: NoHeaderOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Assign an upload to another person, or change how its file is read.

    If the file is read in another way, its columns are matched again.

    \b
    Examples:
      docflow upload change 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 --to grace
      docflow upload change 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 --sheet "Late entries"
    """
    layout = _layout(sheet, encoding, delimiter, header_line, no_header=no_header)
    assignee = None if to is None and notify is None else {"to": to, "notify": notify}
    with gateway(context) as connection:
        body = {"assignee": assignee, "layout": layout or None}
        _show_answer(ask(connection, "PATCH", _ONE, uuid, body=body), output)


def _rows(
    context: typer.Context, uuid: str, outcome: Outcome | None, limit: int, output: Output
) -> None:
    with gateway(context) as connection:
        found = listed(connection, f"{_ONE.format(uuid)}/results", limit, outcome=outcome)
    shown: Mapping[str, Column] = {
        "line": "line",
        "outcome": "outcome",
        "name": "name",
        "what is wrong": "message",
    }
    nothing = "no such rows"
    show_list(found, output, shown, name="line", nothing=nothing, numbers=["line"])
    if len(found) == limit and output is Output.TABLE:
        typer.echo(f"the first {limit}; --limit shows more", err=True)


@app.command()
def undo(
    context: typer.Context,
    uuid: UuidArgument,
    preview: Annotated[
        bool, typer.Option("--preview", help="Say what would be taken back, and change nothing.")
    ] = False,
    line: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Take back this row of the file alone; may be repeated."),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Take the rows of an upload back; records that were changed since are left alone.

    \b
    Examples:
      docflow upload undo 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 --preview
      docflow upload undo 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 --line 3 --line 17
    """
    with gateway(context) as connection:
        if preview:
            found = ask(connection, "GET", f"{_ONE}/undo/preview", uuid, query={"line": line})
        else:
            ask(connection, "POST", f"{_ONE}/undo", uuid, body={"lines": line or []})
            found = ask(connection, "GET", f"{_ONE}/undo", uuid)
        found = {"uuid": uuid, **found}
    if output is not Output.TABLE:
        show_one(found, output, {}, name="uuid")
    elif preview:
        _show_preview(found)
    else:
        typer.echo(f"undoing {uuid}; see `docflow upload show {uuid}`")


def _show_preview(found: Item) -> None:
    typer.echo(
        f"{found['deleted']:,} records would be deleted, {found['restored']:,} would get their "
        f"values back, {found['left_alone']:,} rows would be left alone; nothing was changed"
    )
    for line in _left_alone(found):
        typer.echo(line)


@app.command()
def types(
    context: typer.Context,
    template: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE",
            help="Save a spreadsheet with the columns of this type, and help on a second sheet.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="With --template: file to write [TYPE-template.xlsx]."),
    ] = None,
    force: ForceOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List what can be uploaded, with the fields; or save the template of a type.

    \b
    Examples:
      docflow upload types
      docflow upload types --template MEMBERSHIP --out members.xlsx
    """
    if template is not None:
        _template(context, template, out, force=force)
        return
    with gateway(context) as connection:
        found = ask(connection, "GET", f"{_ALL}/types")["items"]
    shown: Mapping[str, Column] = {
        "type": "name",
        "title": "title",
        "context": lambda one: one["context"] and one["context"]["title"],
        "scope": "scope",
        "fields": lambda one: ", ".join(each["name"] for each in one["fields"]),
    }
    show_list(found, output, shown, name="name", nothing="no types")


def _template(context: typer.Context, name: str, out: Path | None, *, force: bool) -> None:
    from docflow.client.protocol import Request, place

    target = out or Path(f"{name.lower()}-template.xlsx")
    with gateway(context) as connection, output_file(target, force=force) as partial:
        path = place(f"{_ALL}/types/{{name}}/template", name=name)
        connection.download(Request("GET", path, to=partial))
    typer.echo(f"saved {target}; `docflow upload submit {target} --type {name}` sends it")
