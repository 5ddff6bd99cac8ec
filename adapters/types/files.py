"""Declared types as files: read, checked, and refused with the line and what to do.

docflow's own types are such files beside this module. Those of teams are in the folder that
`DOCFLOW_TYPES` names, or in a package that has an entry point of the group `docflow.types`.
"""

import importlib.resources
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar, get_args, get_origin
from zoneinfo import available_timezones

import yaml
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from adapters.files.yaml_files import YamlFile, read_yaml
from adapters.installed import installed
from adapters.types.checks import why_missing
from adapters.types.countries import country_names
from workflows.shared.contracts import problem_text
from workflows.shared.declared_fields import (
    COLUMN,
    DATABASE,
    DAYS_KEPT,
    LANGUAGE,
    NAME,
    NAME_CHARACTERS,
    OTHER_TABLE,
    OWN_TABLE,
    SOME_TEXT,
    DeclaredField,
    DeclaredRule,
    DeclaredTarget,
    Fault,
    Role,
    Surroundings,
    nearest,
)
from workflows.shared.declared_types import (
    DeclaredType,
    HookedType,
    PeopleField,
    PeopleType,
    Source,
)
from workflows.shared.errors import RuleViolation

GROUP: Final = "docflow.types"
"""Entry points that name a package with type files."""
TYPE_BYTES: Final = 256 * 1024
_SUFFIXES: Final = (".yaml", ".yml")
_FAULTS: Final = 10
_LINES: Final = "`word: value` lines are expected here; write each in a line of its own, indented"
_MESSAGES: Final = MappingProxyType(
    {
        "missing": "is missing; add it",
        "string_type": "a text is expected here; write one value",
        "dict_type": _LINES,
        "model_type": _LINES,
        "bool_type": "{input!r} is neither true nor false; write true or false",
        "int_parsing": "{input!r} is no whole number; write one",
        "int_type": "a whole number is expected here; write one",
        "greater_than_equal": "{input} is too small; write {ge} or more",
        "less_than_equal": "{input} is too large; write {le} or less",
        "string_too_short": "is empty; fill it in or remove it",
        "string_too_long": "has more than {max_length:,} characters; shorten it",
        "too_short": "has fewer than {min_length:,}; add to it",
        "too_long": "has more than {max_length:,}; remove some",
    }
)
"""Error of pydantic to what is said of it, with what it knows of the error."""
_PATTERNS: Final = MappingProxyType(
    {
        NAME: f"write small letters, digits and _, a letter first; {NAME_CHARACTERS} at most",
        OTHER_TABLE: "write `schema.table` in small letters",
        OWN_TABLE: "write `schema.table`",
        DAYS_KEPT: "write a number of days: `400 days`",
        LANGUAGE: "write two small letters for the language: de",
        DATABASE: "write a name of DOCFLOW_TYPE_DATABASES: small letters, digits and -, a letter "
        "first",
        COLUMN: "write a name that your database takes",
        SOME_TEXT: "write a text, or remove it",
    }
)
"""Pattern to what is written there."""
_LISTS: Final = MappingProxyType(
    {
        "may_import": f"[operator]; known are {', '.join(sorted(get_args(Role)))}",
        "compare": '[net, "<=", gross]',
        "period": "[first_day, last_day]",
    }
)
"""Word to the list that is written there."""
_Type = TypeVar("_Type", bound=DeclaredType)


@dataclass(frozen=True, slots=True)
class TypeFile:
    """A declaration and where it was read."""

    place: str
    declared: DeclaredType


def read_type(text: str, place: str) -> DeclaredType:
    """Read and check one file.

    Args:
        text: The file.
        place: What to call it in errors.

    Raises:
        RuleViolation: Something is wrong; each line of the message says where, and what to do.
    """
    return read_own_type(text, place, DeclaredType)


def read_own_type(text: str, place: str, model: type[_Type]) -> _Type:
    """As `read_type`, for a type of docflow's own that may say more."""
    if len(text.encode()) > TYPE_BYTES:
        raise RuleViolation(f"{place}: is larger than {TYPE_BYTES // 1024} KB")
    try:
        file = read_yaml(text)
    except RuleViolation as error:
        raise RuleViolation(f"{place}: {error}") from error
    if not isinstance(file.value, dict):
        raise RuleViolation(f"{place}: line 1: a type begins with `name: my_table`")
    try:
        declared = model.model_validate(file.value, extra="forbid", context=_surroundings())
        declared.read_from(Source(place, file.line_of))
        return declared
    except ValidationError as error:
        faults = [_fault(file, dict(each)) for each in error.errors(include_url=False)]
        shown = [f"{place}: line {line}: {said}" for line, said in sorted(faults)[:_FAULTS]]
        if len(faults) > _FAULTS:
            shown.append(f"{place}: and {len(faults) - _FAULTS} more")
        raise RuleViolation("\n".join(shown)) from error


@cache
def _surroundings() -> Surroundings:
    return Surroundings(country_names(), available_timezones(), why_missing)


def _fault(file: YamlFile, error: Mapping[str, Any]) -> tuple[int, str]:
    """Line and sentence of one error."""
    kind, context = error["type"], dict(error.get("ctx", {}))
    # Errors of keys of a mapping end so.
    path = tuple(part for part in error["loc"] if part != "[key]")
    if isinstance(fault := context.get("error"), Fault):
        path += fault.path
    given = error["input"]
    if kind == "string_pattern_mismatch":
        said = f"{given!r} is not possible; {_PATTERNS[context['pattern']]}"
    elif kind == "tuple_type" or (kind == "dict_type" and path[-1] in ("aliases", "choices")):
        listed = f"[{given}]" if isinstance(given, str) else "[first, second]"
        said = f"a list is expected here; write {_LISTS.get(str(path[-1]), listed)}"
    elif kind == "literal_error":
        choices = re.findall("'([^']+)'", context["expected"])
        said = f"{given!r} is not known here; {nearest(str(given), choices)}"
    elif kind == "extra_forbidden":
        own = PeopleType if len(path) == 1 else PeopleField
        if path[-1] in own.model_fields and path[0] not in ("rules", "target"):
            said = "only types of docflow's own say this; remove it"
        else:
            meant = _word_of(given, path[:-1])
            near = f"did you mean {meant!r}?" if meant else None
            said = f"is not known here; {near or nearest(str(path[-1]), _words_at(path[:-1]))}"
    elif kind in _MESSAGES:
        said = _MESSAGES[kind].format(input=given, **context)
    else:
        said = problem_text(error)
    where = ".".join(str(each + 1 if isinstance(each, int) else each) for each in path)
    return file.line_of(path), f"{where}: {said}" if where else said


def _words_at(path: Sequence[Any]) -> Mapping[str, FieldInfo]:
    """The words that are known at a place of a declaration."""
    models = {"fields": DeclaredField, "rules": DeclaredRule, "target": DeclaredTarget}
    return models.get(path[0] if path else "", DeclaredType).model_fields


def _word_of(value: object, path: Sequence[Any]) -> str | None:
    """The word at a place of a declaration that takes a value, if it takes few values alone."""
    words = _words_at(path).items()
    return next((name for name, it in words if value in _literals(it.annotation)), None)


def _literals(annotation: Any) -> Iterator[object]:
    """The values that a type lists."""
    for each in get_args(annotation):
        if get_origin(annotation) is Literal:
            yield each
        else:
            yield from _literals(each)


def types_in(folder: Path | Traversable) -> Iterator[TypeFile]:
    """Every type of a folder, by file name.

    Raises:
        RuleViolation: A file is wrong; or two declare a type of the same name.
    """
    seen: dict[str, str] = {}
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if not file.name.endswith(_SUFFIXES) or not file.is_file():
            continue
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise RuleViolation(f"{file.name}: is no UTF-8 text; save it as UTF-8") from error
        declared = read_type(text, file.name)
        if declared.name in seen:
            raise RuleViolation(
                f"{file.name}: {seen[declared.name]} declares the type {declared.name} as well; "
                "rename one of them"
            )
        seen[declared.name] = file.name
        yield TypeFile(file.name, declared)


def installed_types() -> Sequence[TypeFile]:
    """The types of installed packages, by entry point; a package with an error is left out."""

    def brought(point: EntryPoint) -> list[tuple[str, TypeFile]]:
        folder = importlib.resources.files(point.value)
        files = types_in(folder)
        placed = (TypeFile(f"{each.place} of {point.value}", each.declared) for each in files)
        return [(each.declared.name, each) for each in placed]

    return tuple(installed(GROUP, brought, builtin_types()).found.values())


def declared_in(folder: Path | None) -> Mapping[str, DeclaredType]:
    """The types of installed packages and of a folder, by name.

    Raises:
        RuleViolation: A file is wrong; or the folder declares a type that a package brings.
    """
    places = {each.declared.name: each for each in installed_types()}
    for each in () if folder is None else types_in(folder):
        name = each.declared.name
        if name in places:
            raise RuleViolation(
                f"{each.place}: {places[name].place} declares the type {name} as well; rename "
                "yours, or uninstall the package"
            )
        places[name] = each
    return {name: each.declared for name, each in places.items()}


@cache
def builtin_types() -> Mapping[str, HookedType]:
    """docflow's own types, by name."""
    return _own("builtin", HookedType)


@cache
def club_types() -> Mapping[str, DeclaredType]:
    """What people of clubs refer to, by name: events, races, categories, and the like."""
    return _own("clubs", DeclaredType)


@cache
def contexts() -> Mapping[str, DeclaredType]:
    """What rows of a scope belong to, by the name in the scope: `event_id` is a row of `events`."""
    scopes = {name for each in own_types().values() for name in each.scope}
    named = {f"{name.removesuffix('s')}_id": each for name, each in club_types().items()}
    return MappingProxyType({name: each for name, each in named.items() if name in scopes})


@cache
def people_types() -> Mapping[str, PeopleType]:
    """The types about people, by name, and PERSON: the fields that all of them have."""
    return _own("people", PeopleType)


def _own(folder: str, model: type[_Type]) -> Mapping[str, _Type]:
    place = importlib.resources.files("adapters.types") / folder
    files = sorted(place.iterdir(), key=lambda each: each.name)
    read = [read_own_type(each.read_text(encoding="utf-8"), each.name, model) for each in files]
    return MappingProxyType({each.name: each for each in read})


@cache
def own_types() -> Mapping[str, DeclaredType]:
    """Every type that docflow brings, by name."""
    return MappingProxyType({**builtin_types(), **club_types(), **people_types()})


def type_text(declared: DeclaredType) -> str:
    """A declaration as a file."""
    content = json.loads(declared.canonical)
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
