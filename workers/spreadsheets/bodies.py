"""What people send to `/api/v1/uploads`, and what the OpenAPI document says of it."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, Self, cast

from fastapi.openapi.models import Example
from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    RootModel,
    WithJsonSchema,
    model_validator,
)

from activities.spreadsheets.records import mapping_status
from workers.spreadsheets.upload_form import STRICTLY, LayoutFields, StrictBody
from workflows.shared.contracts import Person, served
from workflows.spreadsheets.decisions import rule_problem
from workflows.spreadsheets.mappings import (
    COLUMNS,
    DECISIONS,
    RULES,
    CellDecision,
    CellRule,
    CellText,
    ColumnDecision,
    FieldName,
    Header,
    MappingStatus,
    TypeName,
)
from workflows.spreadsheets.reviews import KINDS, ROWS, Operation, RowNumber
from workflows.spreadsheets.runs import MOST_UNDONE

created: Final[dict[int | str, dict[str, Any]]] = {
    201: {
        "description": "The import has begun; with its columns where they are known already",
        "headers": {
            "Location": {"schema": {"type": "string"}, "description": "Of the import"},
            "ETag": {"schema": {"type": "string"}, "description": "Version of the mappings"},
        },
    }
}

_FORM_FIELDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "file": {
        "type": "string",
        "format": "binary",
        "description": "XLSX, XLS, ODS or CSV",
    },
    "import_type": {
        "type": "string",
        "pattern": "^([A-Z][A-Z0-9_]*|[a-z][a-z0-9_]*)$",
        "maxLength": 40,
        "examples": ["EVENT_PARTICIPANT", "MEMBERSHIP", "RESULT", "tools"],
        "description": "`GET /api/v1/uploads/types` lists them",
    },
    "context_id": {
        "type": "integer",
        "minimum": 1,
        "maximum": 2**53,
        "description": "Event, membership period or race",
    },
    "organisation_id": {
        "type": "integer",
        "minimum": 1,
        "maximum": 2**53,
        "description": "The first one of your token when absent",
    },
    "auto_start": {
        "type": "boolean",
        "description": "Go straight through when nothing needs a person",
    },
    "dry_run": {
        "type": "boolean",
        "description": "Check every row, report what would change, write nothing",
    },
    "review": {
        "type": "boolean",
        "description": "Have the rows reviewed before anything is written",
    },
    "sheet": {"type": "string", "maxLength": 100},
    "encoding": {
        "type": "string",
        "maxLength": 32,
        "pattern": "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,31}$",
    },
    "delimiter": {"type": "string", "minLength": 1, "maxLength": 1},
    "header_line": {"type": "integer", "minimum": 1, "maximum": 1_048_576},
    "no_header": {
        "type": "boolean",
        "description": "There is no header row: columns are called by letters",
    },
}


def upload_form(called: Callable[[str], str] = str) -> dict[str, Any]:
    """The form of an upload, for the OpenAPI document.

    Args:
        called: Name of a field in the form.
    """
    return form_of(
        {
            "type": "object",
            "required": ["file", called("import_type")],
            "additionalProperties": False,
            "properties": {called(name): dict(each) for name, each in _FORM_FIELDS.items()},
            "patternProperties": {
                "^scope[.][a-z][a-z0-9_]{0,39}$": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 100,
                    "description": "What all rows of a declared type share",
                    "examples": ["P1"],
                }
            },
        },
        {"file": "list.xlsx", called("import_type"): "EVENT_PARTICIPANT", called("context_id"): 7},
    )


def file_form(description: str) -> dict[str, Any]:
    """A form with a file alone, for the OpenAPI document."""
    file = {"type": "string", "format": "binary", "description": description}
    schema = {"type": "object", "required": ["file"], "properties": {"file": file}}
    return form_of(schema, {"file": "list.xlsx"})


def form_of(schema: Mapping[str, Any], example: Mapping[str, Any]) -> dict[str, Any]:
    """A form as the body of a request, for the OpenAPI document; files stand there by name."""
    form = {"schema": schema, "example": example}
    return {"required": True, "content": {"multipart/form-data": form}}


column_decisions: Final[dict[str, Example]] = {
    "mapping": {
        "summary": "Confirm one, choose a field for one, leave one out, take a decision back",
        "value": {
            "decisions": [
                {"id": 1, "confirm": True},
                {"id": 2, "target": "EVENT_CATEGORY_NAME"},
                {"id": 3, "ignore": True},
                {"id": 4, "reset": True},
            ]
        },
    }
}

value_decisions: Final[dict[str, Example]] = {
    "mapping": {
        "summary": "Confirm one, choose a candidate for one, count one as empty, create one",
        "value": {
            "decisions": [
                {"id": 1, "confirm": True},
                {"id": 2, "target_id": 43},
                {"id": 3, "ignore": True},
                {"id": 4, "create": True},
            ]
        },
    },
    "people": {
        "summary": "The same person as suggested, for every question of the kind",
        "value": {"decisions": [{"id": 5, "confirm": True, "for_all": True}]},
    },
    "likely": {
        "summary": "Take suggestions from 90 % on, add all other categories, leave the rest empty",
        "value": {
            "rules": [
                {"confirm": True, "min_score": 0.9},
                {"field": "EVENT_CATEGORY_NAME", "create": True},
                {"ignore": True},
            ]
        },
    },
    "one": {
        "summary": "All values of a category that hold a word mean the same",
        "value": {
            "rules": [{"field": "EVENT_CATEGORY_NAME", "text": "jun", "target_id": 43}],
        },
    },
    "back": {
        "summary": "Take all decisions back",
        "value": {"rules": [{"status": "ALL", "reset": True}]},
    },
}

upload_changes: Final[dict[str, Example]] = {
    "text": {
        "summary": "A semicolon-separated file of a German Windows, with a title above",
        "value": {"layout": {"encoding": "cp1252", "delimiter": ";", "header_line": 3}},
    },
    "workbook": {"summary": "Another sheet", "value": {"layout": {"sheet": "Registrations"}}},
    "rows": {
        "summary": "Import a row although it looks like a total",
        "value": {"rows": {"lines": [13], "keep": True}},
    },
    "colleague": {
        "summary": "Wait for a colleague, with a mail address for reminders",
        "value": {"assignee": {"to": "ben@example.org", "notify": "ben@example.org"}},
    },
}

confirmations: Final[dict[str, Example]] = {
    "columns": {"summary": "The columns", "value": {"what": "columns"}},
    "all": {"summary": "Whatever matched by itself", "value": {"what": "all"}},
}

learnt_column: Final[dict[str, Example]] = {
    "field": {
        "summary": "Such columns are the club",
        "value": {
            "import_type": "EVENT_PARTICIPANT",
            "header": "Trainingsgruppe",
            "target": "CLUB",
        },
    },
    "left out": {
        "summary": "Such columns are ignored",
        "value": {"import_type": "EVENT_PARTICIPANT", "header": "IBAN", "ignore": True},
    },
}

learnt_value: Final[dict[str, Example]] = {
    "row": {
        "summary": "The category of that name, in every event",
        "value": {
            "import_type": "EVENT_PARTICIPANT",
            "field": "EVENT_CATEGORY_NAME",
            "value": "Oldies",
            "target_name": "Masters (40+)",
        },
    }
}

changes: Final[dict[str, Example]] = {
    name: {"value": value}
    for name, value in {
        "set": {"kind": "SET", "cells": [{"row": 17, "column": 3, "value": "anna@example.org"}]},
        "replace": {"kind": "REPLACE", "column": 3, "find": "(at)", "put": "@"},
        "constant": {"kind": "CONSTANT", "column": 5, "value": "AT", "blanks": True},
        "split": {"kind": "SPLIT", "column": 1, "fields": ["FIRST_NAME", "LAST_NAME"]},
        "join": {"kind": "JOIN", "columns": [4, 5], "field": "STREET"},
        "move": {"kind": "MOVE", "column": 3, "field": "EMAIL"},
        "notation": {"kind": "NOTATION", "column": 4, "notation": "DAY_FIRST"},
        "exclude": {"kind": "EXCLUDE", "rows": [4, 9]},
        "undo": {"kind": "UNDO", "version": 6},
    }.items()
}


def _exactly_one(sent: BaseModel, *names: str) -> None:
    """Refuse a body in which not exactly one of some fields is set."""
    fields = type(sent).model_fields
    if sum(getattr(sent, name) not in (None, False) for name in names) != 1:
        *most, last = (fields[name].alias or name for name in names)
        raise ValueError(f"set exactly one of {', '.join(most)} and {last}")


class ColumnDecisionBody(ColumnDecision):
    """A decision about one column: exactly one of target, confirm, ignore and reset."""

    model_config = STRICTLY

    @model_validator(mode="after")
    def _one_of_four(self) -> Self:
        _exactly_one(self, "target", "confirm", "ignore", "reset")
        return self


class ColumnDecisionsBody(StrictBody):
    """What columns mean."""

    decisions: Annotated[
        Annotated[list[ColumnDecisionBody], Field(min_length=1, max_length=COLUMNS)],
        served("A decision for each column", [{"id": 1, "confirm": True}]),
    ]


class RowDecisionsBody(StrictBody):
    """Rows that are imported although they do not look like people, or that are skipped."""

    lines: Annotated[list[RowNumber], Field(min_length=1, max_length=ROWS)] = Field(
        description="Lines of the rows", examples=[[13]]
    )
    keep: Annotated[bool, served("The rows are imported; false: they are skipped", True)] = False


class CellDecisionBody(CellDecision):
    """A decision about one value: exactly one of the five, and whether it is for all."""

    model_config = STRICTLY

    id: Annotated[int, served("Number of the value", 4)] = Field(ge=1, le=2**53)

    @model_validator(mode="after")
    def _one_of_five(self) -> Self:
        _exactly_one(self, "target_id", "confirm", "ignore", "create", "reset")
        return self


class CellRuleBody(CellRule):
    """One answer for every value that matches: exactly one of the five, and which are meant."""

    model_config = STRICTLY

    status: Annotated[
        MappingStatus | None,
        BeforeValidator(lambda name: None if name == "ALL" else mapping_status(name)),
        WithJsonSchema(
            {"enum": ["AUTO_MATCHED", "MANUAL_MATCHED", "UNRESOLVED", "IGNORED", "ALL"]}
        ),
        served("What is decided about the values so far", "UNRESOLVED"),
    ] = MappingStatus.UNMATCHED

    @model_validator(mode="after")
    def _well_formed(self) -> Self:
        _exactly_one(self, "target_id", "confirm", "ignore", "create", "reset")
        if reason := rule_problem(self):
            raise ValueError(reason)
        return self


class ValueDecisionsBody(StrictBody):
    """What values mean: decisions come first, then rules, in their order."""

    decisions: Annotated[
        list[CellDecisionBody], served("A decision for each value", [{"id": 1, "confirm": True}])
    ] = Field(default_factory=list[CellDecisionBody], max_length=DECISIONS)
    rules: Annotated[
        list[CellRuleBody],
        served("One answer for many values each", [{"confirm": True, "min_score": 0.9}]),
    ] = Field(default_factory=list[CellRuleBody], max_length=RULES)

    @model_validator(mode="after")
    def _decides(self) -> Self:
        if not self.decisions and not self.rules:
            raise ValueError("decides nothing: set decisions or rules")
        return self


class AssigneeBody(StrictBody):
    """Another person to wait for."""

    to: Annotated[Person, served("Who takes over", "ben@example.org")] = Field(min_length=1)
    notify: Annotated[
        Annotated[str, Field(max_length=320, pattern=r"^[^@\s]+@[^@\s]+$")] | None,
        served("Mail address for reminders; null: none", "ben@example.org"),
    ] = None


class UploadChange(StrictBody):
    """What is changed of an upload: exactly one of the three."""

    layout: Annotated[
        LayoutFields | None, served("How the file is read", {"sheet": "Registrations"})
    ] = None
    rows: Annotated[
        RowDecisionsBody | None,
        served("Rows that are kept, or skipped, before columns are confirmed", {"lines": [13]}),
    ] = None
    assignee: Annotated[
        AssigneeBody | None, served("Who is waited for", {"to": "ben@example.org"})
    ] = None

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        _exactly_one(self, "layout", "rows", "assignee")
        return self


class ConfirmationBody(StrictBody):
    """What a person confirms."""

    what: Annotated[
        Literal["columns", "values", "rows", "all"],
        served(
            "`columns`: values are collected next; `values`: rows are reviewed or processed next; "
            "`rows`: those of the review are written, those of a dry run too; `all`: what matched "
            "by itself, and the rows are processed",
            "columns",
        ),
    ]
    incomplete: Annotated[
        bool, served("With `columns`: those of required fields are made in the review", False)
    ] = False

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.incomplete and self.what != "columns":
            raise ValueError("incomplete goes with columns")
        return self


class LearntColumnBody(StrictBody):
    """What a header means from now on: a field, or that such columns are left out."""

    organisation_id: Annotated[
        int | None, served("Whose it is; null: the first one of the token", 1)
    ] = Field(default=None, ge=1, le=2**53)
    import_type: Annotated[TypeName, served("What the rows are", "EVENT_PARTICIPANT")]
    header: Annotated[Header, served("The header, as it stands in files", "Alterskl.")] = Field(
        min_length=1
    )
    target: Annotated[FieldName | None, served("Field that it fills", "CLUB")] = None
    ignore: Annotated[bool, served("Such columns are ignored", False)] = False

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        _exactly_one(self, "target", "ignore")
        return self


class LearntValueBody(StrictBody):
    """What a value means from now on: a row by its name, or that it is left empty."""

    organisation_id: Annotated[
        int | None, served("Whose it is; null: the first one of the token", 1)
    ] = Field(default=None, ge=1, le=2**53)
    import_type: Annotated[TypeName, served("What the rows are", "EVENT_PARTICIPANT")]
    field: Annotated[FieldName, served("Its field", "EVENT_CATEGORY_NAME")]
    value: Annotated[CellText, served("As it stands in files", "Oldies")] = Field(min_length=1)
    target_name: Annotated[
        Annotated[str, Field(min_length=1, max_length=200)] | None,
        served("Name of the row that is meant", "Masters (40+)"),
    ] = None
    ignore: Annotated[bool, served("The value is left empty", False)] = False

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        _exactly_one(self, "target_name", "ignore")
        return self


class UndoBody(StrictBody):
    """Which rows of an upload are taken back."""

    lines: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        default=(),
        max_length=MOST_UNDONE,
        description="Lines of the file, as a spreadsheet numbers them; none: all of its rows",
        examples=[[3, 17]],
    )


class ChangeBody(RootModel[Operation]):
    """A change of the rows of a review; a field that its kind does not have is a mistake."""

    @model_validator(mode="before")
    @classmethod
    def _without_unknown(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        sent = cast("dict[str, Any]", given)
        known = KINDS.get(str(sent.get("kind")))
        unknown = sorted(sent.keys() - known.model_fields.keys()) if known else []
        if unknown:
            raise ValueError(f"a change of this kind has no {', '.join(unknown)}"[:200])
        return sent
