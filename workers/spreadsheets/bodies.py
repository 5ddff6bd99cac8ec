"""What people send, and what the OpenAPI document says of it: descriptions, examples."""

from typing import Annotated, Any, Final, Self, cast

from fastapi.openapi.models import Example
from pydantic import BeforeValidator, ConfigDict, Field, RootModel, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel

from activities.spreadsheets.records import mapping_status
from workers.shared.services.bodies import Body
from workflows.shared.contracts import Person, served
from workflows.spreadsheets.decisions import CHOICES, has_one_choice, rule_problem
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

created: Final[dict[int | str, dict[str, Any]]] = {
    201: {
        "description": "The import has begun; with its columns where they are known already",
        "headers": {
            "Location": {"schema": {"type": "string"}, "description": "Of the import"},
            "ETag": {"schema": {"type": "string"}, "description": "Version of the mappings"},
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
                        "pattern": "^([A-Z][A-Z0-9_]*|[a-z][a-z0-9_]*)$",
                        "maxLength": 40,
                        "examples": ["EVENT_PARTICIPANT", "MEMBERSHIP", "RESULT", "tools"],
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
                "patternProperties": {
                    "^scope[.][a-z][a-z0-9_]{0,39}$": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 100,
                        "description": "What all rows of a declared type share",
                        "examples": ["P1"],
                    }
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
        "summary": "Such columns are ignored",
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


def _sent_as(**names: str) -> ConfigDict:
    """Configure the body of a contract: its fields have the names that the API gives them."""
    config = Body.model_config.copy()
    config["alias_generator"] = lambda name: names.get(name) or to_camel(name)
    config["populate_by_name"] = False
    return config


class ColumnDecisionBody(ColumnDecision):
    """A decision about one column: exactly one of targetField, confirm, ignore and reset."""

    model_config = _sent_as(target="targetField")

    @model_validator(mode="after")
    def _one_of_four(self) -> Self:
        if sum((self.target is not None, self.confirm, self.ignore, self.reset)) != 1:
            raise ValueError("set exactly one of targetField, confirm, ignore and reset")
        return self


class RowDecisionsBody(Body):
    """Rows that are imported although they do not look like people, or that are skipped."""

    rows: Annotated[list[RowNumber], Field(min_length=1, max_length=ROWS)] = Field(
        description="Numbers of the rows", examples=[[13]]
    )
    keep: Annotated[bool, served("The rows are imported; false: they are skipped", True)] = False


class CellDecisionBody(CellDecision):
    """A decision about one value: exactly one of the five, and whether it is for all."""

    model_config = _sent_as(target_id="targetEntityId")

    id: Annotated[int, served("Number of the value", 4)] = Field(ge=1, le=2**53)

    @model_validator(mode="after")
    def _one_of_five(self) -> Self:
        if not has_one_choice(self):
            raise ValueError(f"set exactly one of {CHOICES}")
        return self


ColumnDecisionsBody = Annotated[list[ColumnDecisionBody], Field(min_length=1, max_length=COLUMNS)]


class CellRuleBody(CellRule):
    """One answer for every value that matches: exactly one of the five, and which are meant."""

    model_config = _sent_as(field="targetField", target_id="targetEntityId")

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
        if reason := rule_problem(self):
            raise ValueError(reason)
        return self


CellRulesBody = Annotated[list[CellRuleBody], Field(min_length=1, max_length=RULES)]
CellDecisionsBody = Annotated[list[CellDecisionBody], Field(min_length=1, max_length=DECISIONS)]


class LearntColumnBody(Body):
    """What a header means from now on: a field, or that such columns are left out."""

    organisation_id: Annotated[
        int | None, served("Whose it is; null: the first one of the token", 1)
    ] = Field(default=None, ge=1, le=2**53)
    import_type: Annotated[TypeName, served("What the rows are", "EVENT_PARTICIPANT")]
    header: Annotated[Header, served("The header, as it stands in files", "Alterskl.")] = Field(
        min_length=1
    )
    target_field: Annotated[FieldName | None, served("Field that it fills", "CLUB")] = None
    ignore: Annotated[bool, served("Such columns are ignored", False)] = False

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.target_field is not None) == self.ignore:
            raise ValueError("set exactly one of targetField and ignore")
        return self


class LearntValueBody(Body):
    """What a value means from now on: a row by its name, or that it is left empty."""

    organisation_id: Annotated[
        int | None, served("Whose it is; null: the first one of the token", 1)
    ] = Field(default=None, ge=1, le=2**53)
    import_type: Annotated[TypeName, served("What the rows are", "EVENT_PARTICIPANT")]
    target_field: Annotated[FieldName, served("Its field", "EVENT_CATEGORY_NAME")]
    source_value: Annotated[CellText, served("As it stands in files", "Oldies")] = Field(
        min_length=1
    )
    target_name: Annotated[
        Annotated[str, Field(min_length=1, max_length=200)] | None,
        served("Name of the row that is meant", "Masters (40+)"),
    ] = None
    ignore: Annotated[bool, served("The value is left empty", False)] = False

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.target_name is not None) == self.ignore:
            raise ValueError("set exactly one of targetName and ignore")
        return self


class AssigneeBody(Body):
    """Another person to wait for."""

    to: Annotated[Person, served("Who takes over", "ben@example.org")] = Field(min_length=1)
    notify: Annotated[
        Annotated[str, Field(max_length=320, pattern=r"^[^@\s]+@[^@\s]+$")] | None,
        served("Mail address for reminders; null: none", "ben@example.org"),
    ] = None


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
