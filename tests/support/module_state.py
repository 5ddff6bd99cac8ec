"""What modules share between runs that could change: everything not known to be immutable."""

import dataclasses
import datetime
import decimal
import enum
import functools
import importlib
import inspect
import pkgutil
import re
import types
import typing
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any
from zoneinfo import ZoneInfo

import pydantic
from temporalio.common import RetryPolicy, SearchAttributeKey


class _Pair(typing.NamedTuple):
    first: int = 0


PACKAGES = ("workflows",)
"""What every run of a process shares when workflows run without the sandbox."""
VALUES: tuple[type, ...] = (
    *(type(None), bool, int, float, complex, str, bytes, range, enum.Enum, ModuleType),
    *(decimal.Decimal, re.Pattern, ZoneInfo, datetime.date, datetime.time, datetime.tzinfo),
    datetime.timedelta,
    # Functions, and what stands for types.
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType),
    *(types.GenericAlias, types.UnionType, type(typing.Any), type(list[int] | None)),
    *(typing.TypeVar, typing.ParamSpec, functools._lru_cache_wrapper),
    # Of libraries, which change neither and offer no method that would.
    *(pydantic.TypeAdapter, RetryPolicy, SearchAttributeKey),
)
"""Values without state of their own; the cache of a pure function is none that a caller sees."""
DESCRIPTORS = (
    *(property, functools.cached_property, classmethod, staticmethod),
    *(types.MemberDescriptorType, types.GetSetDescriptorType),
    # The fields of a named tuple.
    type(_Pair.first),
)
"""What else stands in a class."""


def modules_of(*packages: str) -> Iterator[ModuleType]:
    """Every module below some packages."""
    for package in map(importlib.import_module, packages):
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(found.name)


def mutable_state(module: ModuleType) -> Iterator[str]:
    """Names of a module, of its classes and of what they hold, whose values could be changed."""
    for name, value in vars(module).items():
        if name.startswith("__"):
            continue
        if isinstance(value, type):
            if value.__module__ == module.__name__:
                yield from _of_class(f"{module.__name__}.{name}", value)
        elif getattr(value, "__module__", module.__name__) == module.__name__ or not callable(
            value
        ):
            yield from _of_value(f"{module.__name__}.{name}", value)


def _of_class(name: str, cls: type) -> Iterator[str]:
    for attribute, value in vars(cls).items():
        if _is_machinery(cls, attribute) or isinstance(value, (type, *DESCRIPTORS)):
            continue
        yield from _of_value(f"{name}.{attribute}", value)


def _is_machinery(cls: type, attribute: str) -> bool:
    """Whether Python or pydantic made it, or it is the configuration of a model."""
    made = attribute.startswith(("__", "_abc_", "_field_defaults"))
    of_enum = issubclass(cls, enum.Enum) and attribute.endswith("_")
    return made or of_enum or (issubclass(cls, pydantic.BaseModel) and attribute == "model_config")


def _of_value(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, types.FunctionType):
        defaults = (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
        yield from _of_value(f"{name}()", defaults)
    elif isinstance(value, tuple | frozenset):
        for each in value:
            yield from _of_value(name, each)
    elif isinstance(value, types.MappingProxyType):
        for key, each in typing.cast(Mapping[Any, Any], value).items():
            yield from _of_value(f"{name}[{key!r}]", each)
    elif dataclasses.is_dataclass(value) and not isinstance(value, (type, *VALUES)):
        if not value.__dataclass_params__.frozen:
            yield name
        for field in dataclasses.fields(value):
            yield from _of_value(f"{name}.{field.name}", getattr(value, field.name))
    elif isinstance(value, pydantic.BaseModel) and value.model_config.get("frozen"):
        for field in type(value).model_fields:
            yield from _of_value(f"{name}.{field}", getattr(value, field))
    elif not (isinstance(value, (type, *VALUES)) or _is_code(value)):
        yield name


def _is_code(value: Any) -> bool:
    """Whether it is a function, or stands for a type."""
    of_typing = ("typing", "types", "typing_extensions", "annotationlib")
    return inspect.isroutine(value) or type(value).__module__ in of_typing
