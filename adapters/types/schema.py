"""The JSON Schema of type files: what editors show and refuse, made of what the loader reads."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from workflows.shared.declared_fields import (
    KINDS,
    MAY_BE_EMPTY,
    ONLY,
    DeclaredField,
    DeclaredPart,
    DeclaredRule,
    DeclaredTarget,
)
from workflows.shared.declared_types import OWN_COLUMNS, STAGED, DeclaredType


class _OfFiles(GenerateJsonSchema):
    """The schema of what YAML makes of a file; the loader reads each plain value as a text."""

    def generate(self, schema: CoreSchema, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        made = super().generate(schema, mode)
        for each in (made, *made["$defs"].values()):
            _finish(each)
        field, rule, target = (
            made["$defs"][each.__name__] for each in (DeclaredField, DeclaredRule, DeclaredTarget)
        )
        field["properties"]["kind"] = _kinds(field["properties"]["kind"])
        field["allOf"] = [
            *(_only(_said(word), sorted(kinds)) for word, kinds in ONLY.items()),
            _only(_said("default", {"const": ""}), sorted(MAY_BE_EMPTY)),
            *_OF_FIELDS,
        ]
        rule["allOf"], target["allOf"], made["allOf"] = _OF_RULES, _OF_TARGETS, _OF_TYPES
        for name, within in _TWICE.items():
            part = made if within is None else made["$defs"][within.__name__]
            part["properties"][name]["uniqueItems"] = True
        values = made["properties"]["fields"]["patternProperties"]
        made["properties"]["fields"]["patternProperties"] = dict(
            zip(values, map(_or_blank, values.values()), strict=True)
        )
        return made

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        made = super().str_schema(schema)
        examples = {"integer": "1", "number": "1.5", "boolean": "true"}
        pattern = made.get("pattern", "")
        types = [name for name, each in examples.items() if re.search(pattern, each)]
        if "number" in types:
            types.remove("integer")
        return made | {"type": ["string", *types]} if types else made

    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        # In quotes it is a text.
        return super().int_schema(schema) | {"type": ["integer", "string"], "pattern": "^[0-9]+$"}


def schema_text() -> str:
    """Return the JSON Schema of type files."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    schema |= DeclaredType.model_json_schema(schema_generator=_OfFiles)
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _finish(model: dict[str, Any]) -> None:
    """Complete the schema of a part of a declaration."""
    required = model.get("required", ())
    for name, word in model["properties"].items():
        word.pop("title", None)
        _close(word)
        if word.get("default", "") is None:
            del word["default"]
        if name not in required:
            model["properties"][name] = _or_blank(word)


def _close(schema: Any) -> None:
    """Refuse names of a mapping that its pattern does not match."""
    if isinstance(schema, list):
        for each in cast("list[Any]", schema):
            _close(each)
    elif isinstance(schema, dict):
        found = cast("dict[str, Any]", schema)
        if "patternProperties" in found:
            found["additionalProperties"] = False
        for each in found.values():
            _close(each)


def _or_blank(word: dict[str, Any]) -> dict[str, Any]:
    """A word with nothing behind it is as good as none."""
    if any(each == {"type": "null"} for each in word.get("anyOf", ())):
        return word
    said = {each: word[each] for each in ("description", "default") if each in word}
    rest = {each: value for each, value in word.items() if each not in said}
    return said | {"anyOf": [*rest.get("anyOf", [rest]), {"type": "null"}]}


def _kinds(word: Mapping[str, Any]) -> dict[str, Any]:
    """The kinds, with what each of them reads."""
    listed = [{"const": kind, "description": said} for kind, (_, said) in KINDS.items()]
    said = {"description": "How its cells are read.", "default": word["default"]}
    return said | {"anyOf": [*listed, {"type": "null"}]}


def _said(word: str, value: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What has a word with something behind it, or with such a value."""
    return {"properties": {word: value or {"not": {"type": "null"}}}, "required": [word]}


def _if(given: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    return {"if": given, "then": then}


def _without(*words: str) -> dict[str, Any]:
    return {"not": {"anyOf": list(map(_said, words))}}


def _one_of(*words: str) -> dict[str, Any]:
    return {"oneOf": list(map(_said, words))}


_IS_TRUE: Final = {"enum": [True, "true", "yes", "on"]}
_IS_FILLED: Final[Mapping[str, Any]] = {"not": {"enum": [None, [], {}]}}
_OF_FIELDS: Final = (
    _if(_said("kind", {"const": "choice"}), _said("choices", _IS_FILLED)),
    _if(_said("kind", {"const": "reference"}), _one_of("to", "table")),
    _if(_said("to"), _without("row_key", "label")),
    _if(_said("table"), {**_said("row_key"), "not": _said("unknown", {"const": "create"})}),
    _if(_said("required", _IS_TRUE), _without("default")),
)
_OF_RULES: Final = (
    _one_of("any_of", "together", "compare", "required"),
    {**_if(_said("required"), _said("when")), "else": _without("when")},
)
_OF_TARGETS: Final = (
    _one_of("table", "file"),
    _if(_said("file"), {"not": {"anyOf": [_said("database"), _said("columns", _IS_FILLED)]}}),
    _if(_said("table"), _without("webhook")),
)
_OWN: Final = {"not": {"enum": sorted(OWN_COLUMNS)}}
_STAGED: Final = {"not": {"pattern": f"^{STAGED}"}}
_OF_TYPES: Final = (
    {
        "properties": {
            "name": _STAGED,
            "table": _STAGED,
            "scope": {"items": _OWN},
            "fields": {"propertyNames": _OWN},
        }
    },
    _if(_said("target"), _without("retention")),
    _if(
        _said("target", {**_said("table"), "type": "object"}),
        {"not": {"anyOf": [_said("table"), _said("unmapped", {"const": "keep"})]}},
    ),
)
_TWICE: Final[Mapping[str, type[DeclaredPart] | None]] = {
    "key": None,
    "scope": None,
    "checks": None,
    "any_of": DeclaredRule,
    "together": DeclaredRule,
}
"""Lists that hold nothing twice, and of which part; None: of the type."""


def _only(is_said: Mapping[str, Any], kinds: list[str]) -> dict[str, Any]:
    """What fields of some kinds may say."""
    kind = {"enum": kinds} if "text" not in kinds else {"enum": [*kinds, None]}
    then: dict[str, Any] = {"properties": {"kind": kind}}
    return {"if": is_said, "then": then if "text" in kinds else then | {"required": ["kind"]}}
