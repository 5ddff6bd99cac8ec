"""Examples and request bodies of the OpenAPI document."""

from typing import Any, Final

from fastapi.openapi.models import Example

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
