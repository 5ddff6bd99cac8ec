"""Contracts in histories change by new fields with defaults and new values of enums only.

Of the functions that check a contract only the names are locked: one that is new, or stricter than
before, must take whatever histories hold.

After such a change, run `python -m tests.replay.test_contracts` to write the lock anew.
"""

import importlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from enum import Enum
from pathlib import Path
from pkgutil import iter_modules, walk_packages
from types import ModuleType
from typing import Annotated, Any, Final, get_args

import pytest
from pydantic import (
    AfterValidator,
    BeforeValidator,
    PlainValidator,
    TypeAdapter,
    WrapValidator,
    create_model,
    field_validator,
)
from pydantic.fields import FieldInfo
from typing_extensions import TypeAliasType

import workflows
from workers import catalogue
from workflows.shared.contracts import Contract

LOCK = Path(__file__).parent / "contracts.lock.json"

Locked = type[Contract] | type[Enum]

Parts = Mapping[str, Mapping[str, Any]]
"""Field of a contract, or value of an enum, to what is locked of it."""

_ANY: Final = TypeAdapter[Any](Any)
_CHECKS: Final = "(checks)"
_STRICT: Final = "(strict)"
_VALIDATORS: Final = (AfterValidator, BeforeValidator, PlainValidator, WrapValidator)


def contracts_of(package: ModuleType) -> Iterator[Locked]:
    """Every contract and enum that a module or its package defines; private ones included."""
    modules = [package]
    for found in walk_packages(getattr(package, "__path__", []), f"{package.__name__}."):
        modules.append(importlib.import_module(found.name))
    for module in modules:
        for name, value in vars(module).items():
            is_locked = isinstance(value, type) and issubclass(value, (Contract, Enum))
            if is_locked and (value.__module__, value.__name__) == (module.__name__, name):
                yield value


def schemas(word: str, found: Iterable[Locked]) -> dict[str, Parts]:
    """`word.Class` of each contract and enum to its parts: files may move within a package."""
    parts: dict[str, Parts] = {}
    for each in found:
        key = f"{word}.{each.__name__}"
        assert key not in parts, f"two contracts are called {key}"
        parts[key] = fields_of(each) if issubclass(each, Contract) else values_of(each)
    return parts


def values_of(enum: type[Enum]) -> Parts:
    """Nothing is locked of a value but that it is there."""
    return {str(member.value): {} for member in enum}


def fields_of(model: type[Contract]) -> Parts:
    schema = model.model_json_schema()
    required = schema.get("required", [])
    fields = {name_of(name, field): field for name, field in model.model_fields.items()}
    return {
        **whole_of(model),
        **{
            name: {
                **default_of(fields[name]),
                **written_of(name, fields[name]),
                **checked_by(fields[name]),
                "required": name in required,
                "schema": {
                    key: value
                    for key, value in definition.items()
                    if key not in ("description", "title", "default", "examples")
                },
            }
            for name, definition in schema.get("properties", {}).items()
        },
    }


def whole_of(model: type[Contract]) -> Parts:
    """What no schema says of a contract: the functions that may refuse a value, and strictness."""
    decorators = model.__pydantic_decorators__
    checks = sorted({**decorators.field_validators, **decorators.model_validators})
    strict = bool(model.model_config.get("strict"))
    return {
        **({_CHECKS: {"names": checks}} if checks else {}),
        **({_STRICT: {}} if strict else {}),
    }


def name_of(name: str, field: FieldInfo) -> str:
    """What a field is called in JSON that is read."""
    read = field.validation_alias
    return read if isinstance(read, str) else name


def written_of(name: str, field: FieldInfo) -> dict[str, Any]:
    """How a field is written where that differs from how it is read."""
    written = field.serialization_alias or name
    return {
        **({} if written == name else {"written_as": written}),
        **({"left_out": True} if field.exclude else {}),
    }


def checked_by(field: FieldInfo) -> dict[str, Any]:
    """The functions that may refuse or change a value because of the type of its field."""
    found = set(functions_in((field.annotation, *field.metadata)))
    return {"checked_by": sorted(found)} if found else {}


def functions_in(types: Iterable[Any]) -> Iterator[str]:
    """Functions of validators within types, also where a type has a name of its own."""
    for each in types:
        if isinstance(each, _VALIDATORS):
            function: Callable[..., Any] = each.func
            yield function.__qualname__
        yield from functions_in(get_args(each))
        if isinstance(each, TypeAliasType):
            yield from functions_in([each.__value__])


def default_of(field: FieldInfo) -> dict[str, Any]:
    """The default of a field, as JSON. Of a contract: only the fields that are set otherwise."""
    if field.is_required():
        return {}
    default = field.get_default(call_default_factory=True)
    return {"default": _ANY.dump_python(default, mode="json", exclude_defaults=True)}


def changes(locked: Mapping[str, Parts], found: Mapping[str, Parts]) -> list[str]:
    """What differs from the lock, and whether histories written before still decode."""
    said = [f"{name} is not locked" for name in sorted(found.keys() - locked.keys())]
    said += [f"{name} is gone" for name in sorted(locked.keys() - found.keys())]
    for name in sorted(found.keys() & locked.keys()):
        before, now = locked[name], found[name]
        said += [f"{name}.{part} was removed" for part in sorted(before.keys() - now.keys())]
        for part in sorted(now.keys() - before.keys()):
            wrong = "needs a default" if now[part].get("required") else "is not locked"
            said.append(f"{name}.{part} {wrong}")
        said += [
            f"{name}.{part} changed from {before[part]} to {now[part]}"
            for part in sorted(now.keys() & before.keys())
            if now[part] != before[part]
        ]
    return said


def read_lock() -> dict[str, Parts]:
    return json.loads(LOCK.read_text())


def every_contract() -> dict[str, Parts]:
    return {
        name: parts
        for word, package in every_package().items()
        for name, parts in schemas(word, contracts_of(importlib.import_module(package))).items()
    }


def test_no_contract_differs_from_the_lock() -> None:
    assert changes(read_lock(), every_contract()) == [], "see the top of this file"


def every_package() -> Mapping[str, str]:
    """Name in the lock to package: of every pipeline, and what no single one owns."""
    shared = {found.name: f"workflows.{found.name}" for found in iter_modules(workflows.__path__)}
    return {**shared, **{pipeline.name: pipeline.contracts for pipeline in catalogue.PIPELINES}}


def every_of_pipelines() -> Iterator[tuple[str, Locked]]:
    """The word of a pipeline, and each contract and enum of its package."""
    for pipeline in catalogue.PIPELINES:
        for found in contracts_of(importlib.import_module(pipeline.contracts)):
            yield pipeline.name, found


def with_required_field() -> Mapping[str, type[Contract]]:
    """The first contract of each pipeline that has a required field."""
    first: dict[str, type[Contract]] = {}
    for word, found in every_of_pipelines():
        if issubclass(found, Contract) and fields_of_kind(found, required=True):
            first.setdefault(word, found)
    return first


def fields_of_kind(model: type[Contract], *, required: bool) -> Mapping[str, FieldInfo]:
    """The fields of a contract that are required, or those that have a default."""
    fields = model.model_fields.items()
    return {name: field for name, field in fields if field.is_required() is required}


def redefined(model: type[Contract], **fields: Any) -> type[Contract]:
    """A contract with other or further fields, under the same name."""
    return create_model(model.__name__, __base__=model, __module__=model.__module__, **fields)


REQUESTS = {"JobRequest", "RasterParameters", "ProcessVectorParameters", "ScheduleConfig"}
"""What people ask for: a misspelt name is refused. Runs of jobs carry parameters as plain JSON."""


def test_a_contract_ignores_fields_of_a_newer_release() -> None:
    """Else an older worker refuses what a newer one wrote, and no payload loses a field."""
    found = [
        each
        for package in every_package().values()
        for each in contracts_of(importlib.import_module(package))
        if issubclass(each, Contract)
    ]
    strict = {each.__name__ for each in found if each.model_config.get("extra") != "ignore"}
    assert strict == REQUESTS


def test_every_definition_behind_a_field_is_locked() -> None:
    lock = read_lock()
    behind = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(lock)))
    assert behind - {key.rpartition(".")[2] for key in lock} == set()


def test_a_change_is_planted_in_every_pipeline() -> None:
    assert list(with_required_field()) == [pipeline.name for pipeline in catalogue.PIPELINES]


@pytest.mark.parametrize(("word", "model"), with_required_field().items())
def test_the_lock_refuses_an_incompatible_field(word: str, model: type[Contract]) -> None:
    key = f"{word}.{model.__name__}"
    locked = {key: read_lock()[key]}
    name, field = next(iter(fields_of_kind(model, required=True).items()))
    shown = name_of(name, field)

    def planted(**fields: Any) -> list[str]:
        return changes(locked, schemas(word, [redefined(model, **fields)]))

    def without() -> list[str]:
        kept = {key: (each.annotation, each) for key, each in model.model_fields.items()}
        del kept[name]
        changed: Any = create_model(
            model.__name__, __base__=Contract, __module__=model.__module__, **kept
        )
        return changes(locked, schemas(word, [changed]))

    assert planted() == []
    assert planted(planted=(int, ...)) == [f"{key}.planted needs a default"]
    assert planted(planted=(int, 0)) == [f"{key}.planted is not locked"]
    [changed] = planted(**{name: (dict[str, bytes], field)})
    assert changed.startswith(f"{key}.{shown} changed from ")
    assert f"{key}.{shown} was removed" in without()


@pytest.mark.parametrize(("word", "model"), with_required_field().items())
def test_the_lock_refuses_what_no_schema_says(word: str, model: type[Contract]) -> None:
    key = f"{word}.{model.__name__}"
    locked = {key: read_lock()[key]}
    name, field = next(iter(fields_of_kind(model, required=True).items()))

    def planted(found: type[Contract]) -> list[str]:
        return changes(locked, schemas(word, [found]))

    for attribute, value, said in (
        ("serialization_alias", "planted", "'written_as': 'planted'"),
        ("exclude", True, "'left_out': True"),
    ):
        other = copy(field)
        # Else a generator of aliases overwrites it.
        other.alias_priority = 2
        setattr(other, attribute, value)
        [changed] = planted(redefined(model, **{name: (field.annotation, other)}))
        assert said in changed

    class Checked(model):
        @field_validator(name)
        @classmethod
        def _refuse(cls, value: Any) -> Any:
            raise ValueError("planted")

    class Strict(model, strict=True):
        pass

    for found, part in ((Checked, "checks"), (Strict, "strict")):
        found.__name__ = model.__name__
        [changed] = planted(found)
        assert changed.startswith(f"{key}.({part}) ")

    annotation: Any = field.annotation
    named = TypeAliasType("Named", Annotated[annotation, AfterValidator(planted)])
    for checked in (named, dict[str, named], Annotated[annotation, BeforeValidator(planted)]):
        changed = planted(redefined(model, **{name: (checked, field)}))
        assert "'checked_by': [" in changed[0]


@pytest.mark.parametrize(
    ("word", "model"),
    [(word, found) for word, found in every_of_pipelines() if issubclass(found, Contract)],
)
def test_the_lock_refuses_another_default(word: str, model: type[Contract]) -> None:
    key = f"{word}.{model.__name__}"
    locked = {key: read_lock()[key]}
    for name, field in fields_of_kind(model, required=False).items():
        other = copy(field)
        other.default, other.default_factory = "planted", None
        shown = name_of(name, field)
        found = schemas(word, [redefined(model, **{name: (field.annotation, other)})])
        assert found[key][shown] == {**locked[key][shown], "default": "planted"}
        [changed] = changes(locked, found)
        assert changed.startswith(f"{key}.{shown} changed from ")


@pytest.mark.parametrize(
    ("word", "enum"),
    [(word, found) for word, found in every_of_pipelines() if issubclass(found, Enum)],
)
def test_the_lock_refuses_an_enum_that_lacks_a_value(word: str, enum: type[Enum]) -> None:
    key = f"{word}.{enum.__name__}"
    locked = {key: read_lock()[key]}
    values = {member.name: member.value for member in enum}
    for name, value in values.items():
        renamed = Enum(enum.__name__, {**values, name: "planted"})
        assert changes(locked, schemas(word, [renamed])) == [
            f"{key}.{value} was removed",
            f"{key}.planted is not locked",
        ]


if __name__ == "__main__":
    LOCK.write_text(json.dumps(every_contract(), indent=1, sort_keys=True) + "\n")
