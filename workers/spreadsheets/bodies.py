"""What people send, and what the OpenAPI document says of it: descriptions, examples."""

from typing import Annotated, Any, Final, Literal, Self, cast

from fastapi.openapi.models import Example
from pydantic import Field, RootModel, model_validator

from workers.shared.services.bodies import Body
from workers.spreadsheets.schemas import DESCRIBED, mapping_status
from workflows.shared.contracts import Person
from workflows.spreadsheets.decisions import CHOICES, has_one_choice, malformed
from workflows.spreadsheets.mappings import (
    COLUMNS,
    DECISIONS,
    RULES,
    CellDecision,
    CellRule,
    CellText,
    ColumnDecision,
    EntityId,
    FieldName,
    Header,
    QuestionKind,
    TypeName,
)
from workflows.spreadsheets.reviews import KINDS, ROWS, Operation, RowNumber

_UUID: Final = "0d2f8a52-6c1e-4d4e-9d8f-5b1a7f0c2b11"

created: Final[dict[int | str, dict[str, Any]]] = {
    201: {
        "description": "The import has begun; with its columns where they are known already",
        "headers": {
            "Location": {"schema": {"type": "string"}, "description": "Of the import"},
            "ETag": {"schema": {"type": "string"}, "description": "Version of the mappings"},
        },
        "content": {
            "application/json": {
                "example": {
                    "identifier": _UUID,
                    "importType": "EVENT_PARTICIPANT",
                    "status": "COLUMN_MAPPING",
                    "originalFilename": "registrations.xlsx",
                    "organisationId": 1,
                    "contextId": 7,
                    "totalRows": 150,
                    "processedRows": 0,
                    "successCount": 0,
                    "errorCount": 0,
                    "parkedRows": 0,
                    "openValues": 0,
                    "progressPercent": 0,
                    "step": "",
                    "reason": None,
                    "createdBy": "anna@example.org",
                    "assignee": "anna@example.org",
                    "waitingSince": "2026-01-03T10:00:01Z",
                    "createdAt": "2026-01-03T10:00:00Z",
                    "updatedAt": "2026-01-03T10:00:01Z",
                    "finishedAt": None,
                    "purgedAt": None,
                    "autoStart": False,
                    "dryRun": False,
                    "hasReport": False,
                    "undoStatus": None,
                    "version": 0,
                    "columnMappings": [
                        {
                            "id": 1,
                            "columnIndex": 0,
                            "sourceHeader": "Name",
                            "targetField": "LAST_NAME",
                            "status": "AUTO_MATCHED",
                            "confidenceScore": 0.95,
                            "reason": "",
                            "alternatives": [],
                            "samples": ["Meier", "Novak"],
                            "blanks": ["-"],
                        },
                        {
                            "id": 2,
                            "columnIndex": 1,
                            "sourceHeader": "Alterskl.",
                            "targetField": None,
                            "status": "UNRESOLVED",
                            "confidenceScore": 0.0,
                            "reason": "",
                            "alternatives": [
                                {
                                    "name": "EVENT_CATEGORY_NAME",
                                    "score": 0.9,
                                    "id": None,
                                    "reason": "the header looks like \u201caltersklasse\u201d",
                                }
                            ],
                            "samples": ["Junior (U18)"],
                            "blanks": [],
                        },
                    ],
                }
            }
        },
    }
}

upload_form: Final[dict[str, Any]] = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["file", "importType"],
                "additionalProperties": False,
                "properties": {
                    "file": {
                        "type": "string",
                        "format": "binary",
                        "description": "XLSX, XLS, ODS or CSV",
                    },
                    "importType": {
                        "type": "string",
                        "pattern": "^[A-Z][A-Z0-9_]{0,39}$",
                        "examples": ["EVENT_PARTICIPANT", "MEMBERSHIP", "RESULT"],
                    },
                    "contextId": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 2**53,
                        "description": "Event, membership period or race",
                    },
                    "organisationId": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 2**53,
                        "description": "The first one of your token when absent",
                    },
                    "autoStart": {
                        "type": "boolean",
                        "description": "Go straight through when nothing needs a person",
                    },
                    "dryRun": {
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
                    "headerLine": {"type": "integer", "minimum": 1, "maximum": 1_048_576},
                    "noHeader": {
                        "type": "boolean",
                        "description": "There is no header row: columns are called by letters",
                    },
                },
            }
        }
    },
}

column_decisions: Final[dict[str, Example]] = {
    "mapping": {
        "summary": "Confirm one, choose a field for one, leave one out",
        "value": [
            {"id": 1, "confirm": True},
            {"id": 2, "targetField": "EVENT_CATEGORY_NAME"},
            {"id": 3, "ignore": True},
            {"id": 4, "reset": True},
        ],
    }
}

cell_decisions: Final[dict[str, Example]] = {
    "mapping": {
        "summary": "Confirm one, choose a candidate for one, count one as empty, create one",
        "value": [
            {"id": 1, "confirm": True},
            {"id": 2, "targetEntityId": 43},
            {"id": 3, "ignore": True},
            {"id": 4, "create": True},
        ],
    },
    "people": {
        "summary": "The same person as suggested, for every question of the kind",
        "value": [{"id": 5, "confirm": True, "forAll": True}],
    },
    "back": {
        "summary": "Take a decision back",
        "value": [{"id": 2, "reset": True}],
    },
}

cell_rules: Final[dict[str, Example]] = {
    "likely": {
        "summary": "Take suggestions from 90 % on, add all other categories, leave the rest empty",
        "value": [
            {"confirm": True, "minScore": 0.9},
            {"targetField": "EVENT_CATEGORY_NAME", "create": True},
            {"ignore": True},
        ],
    },
    "one": {
        "summary": "All values of a category that hold a word mean the same",
        "value": [{"targetField": "EVENT_CATEGORY_NAME", "text": "jun", "targetEntityId": 43}],
    },
    "back": {"summary": "Take all decisions back", "value": [{"status": "ALL", "reset": True}]},
}

layout: Final[dict[str, Example]] = {
    "text": {
        "summary": "A semicolon-separated file of a German Windows, with a title above",
        "value": {"encoding": "cp1252", "delimiter": ";", "headerLine": 3},
    },
    "workbook": {"summary": "Another sheet", "value": {"sheet": "Registrations"}},
}

assignee: Final[dict[str, Example]] = {
    "colleague": {
        "summary": "A colleague, with a mail address for reminders",
        "value": {"to": "ben@example.org", "notify": "ben@example.org"},
    }
}

learnt_column: Final[dict[str, Example]] = {
    "field": {
        "summary": "Such columns are the club",
        "value": {
            "importType": "EVENT_PARTICIPANT",
            "header": "Trainingsgruppe",
            "targetField": "CLUB",
        },
    },
    "left out": {
        "summary": "Such columns are left out",
        "value": {"importType": "EVENT_PARTICIPANT", "header": "IBAN", "ignore": True},
    },
}

learnt_value: Final[dict[str, Example]] = {
    "row": {
        "summary": "The category of that name, in every event",
        "value": {
            "importType": "EVENT_PARTICIPANT",
            "targetField": "EVENT_CATEGORY_NAME",
            "sourceValue": "Oldies",
            "targetName": "Masters (40+)",
        },
    }
}


class ColumnDecisionBody(Body):
    """A decision about one column: exactly one of targetField, confirm, ignore and reset."""

    model_config = DESCRIBED

    id: int = Field(ge=1, le=COLUMNS)
    target_field: FieldName | None = None
    confirm: bool = False
    ignore: bool = False
    reset: bool = False

    @model_validator(mode="after")
    def _one_of_four(self) -> Self:
        if sum((self.target_field is not None, self.confirm, self.ignore, self.reset)) != 1:
            raise ValueError("set exactly one of targetField, confirm, ignore and reset")
        return self

    def decision(self) -> ColumnDecision:
        """As runs know it."""
        return ColumnDecision(
            id=self.id,
            target=self.target_field,
            confirm=self.confirm,
            ignore=self.ignore,
            reset=self.reset,
        )


class RowDecisionsBody(Body):
    """Rows that are imported although they look like no people, or that are left out."""

    model_config = DESCRIBED

    rows: Annotated[list[RowNumber], Field(min_length=1, max_length=ROWS)] = Field(
        description="Numbers of the rows", examples=[[13]]
    )
    keep: bool = False


class CellDecisionBody(Body):
    """A decision about one value: exactly one of the five, and whether it is for all."""

    model_config = DESCRIBED

    id: int = Field(ge=1, le=2**53)
    target_entity_id: EntityId | None = None
    confirm: bool = False
    ignore: bool = False
    create: bool = False
    reset: bool = False
    for_all: bool = False

    @model_validator(mode="after")
    def _one_of_five(self) -> Self:
        if not has_one_choice(self.decision()):
            raise ValueError(f"set exactly one of {CHOICES}")
        return self

    def decision(self) -> CellDecision:
        """As runs know it."""
        return CellDecision(
            id=self.id,
            target_id=self.target_entity_id,
            confirm=self.confirm,
            ignore=self.ignore,
            create=self.create,
            reset=self.reset,
            for_all=self.for_all,
        )


ColumnDecisionsBody = Annotated[list[ColumnDecisionBody], Field(min_length=1, max_length=COLUMNS)]


class CellRuleBody(Body):
    """One answer for every value that matches: exactly one of the five, and which are meant."""

    target_field: FieldName | None = Field(
        None,
        description="Field whose values are meant; null: every field, without questions about "
        "people. `create` and `targetEntityId` need one.",
        examples=["EVENT_CATEGORY_NAME"],
    )
    text: CellText = Field(
        "",
        description="Part of the value; case, accents and punctuation do not count",
        examples=["junior"],
    )
    status: Literal["AUTO_MATCHED", "MANUAL_MATCHED", "UNRESOLVED", "IGNORED", "ALL"] = Field(
        "UNRESOLVED", description="What is decided about the values so far", examples=["UNRESOLVED"]
    )
    question: QuestionKind | None = Field(
        None, description="Of questions about people: this kind only", examples=["MAIL_MISSING"]
    )
    min_score: float = Field(
        0,
        ge=0,
        le=1,
        description="With `confirm`: values whose match or first alternative scores at least this",
        examples=[0.9],
    )
    target_entity_id: EntityId | None = Field(None, description="Row that all mean", examples=[43])
    confirm: bool = Field(
        False,
        description="The match is right; where there is none, the first alternative is",
        examples=[True],
    )
    ignore: bool = Field(False, description="They count as empty", examples=[False])
    create: bool = Field(False, description="A row is made for each", examples=[False])
    reset: bool = Field(False, description="Decisions are taken back", examples=[False])

    @model_validator(mode="after")
    def _well_formed(self) -> Self:
        if reason := malformed(self.rule()):
            raise ValueError(reason)
        return self

    def rule(self) -> CellRule:
        """As runs know it."""
        return CellRule(
            field=self.target_field,
            text=self.text,
            status=None if self.status == "ALL" else mapping_status(self.status),
            question=self.question,
            min_score=self.min_score,
            target_id=self.target_entity_id,
            confirm=self.confirm,
            ignore=self.ignore,
            create=self.create,
            reset=self.reset,
        )


CellRulesBody = Annotated[list[CellRuleBody], Field(min_length=1, max_length=RULES)]
CellDecisionsBody = Annotated[list[CellDecisionBody], Field(min_length=1, max_length=DECISIONS)]


class LearntColumnBody(Body):
    """What a header means from now on: a field, or that such columns are left out."""

    model_config = DESCRIBED

    organisation_id: int | None = Field(default=None, ge=1, le=2**53)
    """The first one of the token when absent."""
    import_type: TypeName
    header: Header = Field(min_length=1)
    target_field: FieldName | None = None
    ignore: bool = False

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.target_field is not None) == self.ignore:
            raise ValueError("set exactly one of targetField and ignore")
        return self


class LearntValueBody(Body):
    """What a value means from now on: a row by its name, or that it is left empty."""

    model_config = DESCRIBED

    organisation_id: int | None = Field(default=None, ge=1, le=2**53)
    """The first one of the token when absent."""
    import_type: TypeName
    target_field: FieldName
    source_value: CellText = Field(min_length=1)
    target_name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    ignore: bool = False

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.target_name is not None) == self.ignore:
            raise ValueError("set exactly one of targetName and ignore")
        return self


class AssigneeBody(Body):
    """Another person to wait for."""

    model_config = DESCRIBED

    to: Person = Field(min_length=1)
    notify: Annotated[str, Field(max_length=320, pattern=r"^[^@\s]+@[^@\s]+$")] | None = None
    """Mail address."""


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
