"""What every contract shares."""

from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, ValidationInfo, model_validator
from pydantic.alias_generators import to_camel


def built_when_used() -> ConfigDict:
    """What has a validator built when it is first used, and not with its class.

    Every process knows the contracts of all pipelines and uses those of a few: to build all of them
    is most of what it costs to import them.
    """
    return ConfigDict(defer_build=True)


class Contract(BaseModel):
    """An immutable value that crosses a boundary: a message, an input, an update, a result.

    New fields come with defaults only, so that histories written by an older release still
    decode; fields of a newer release are ignored.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


def problem_text(problem: Mapping[str, Any]) -> str:
    """What is wrong, of an entry of pydantic's `ValidationError.errors()`, for people."""
    return str(problem["msg"]).removeprefix("Value error, ")


class AuthoredContract(Contract):
    """One that other people's code builds, as the stages of a job type: it refuses unknown fields.

    In JSON, which a newer release may have written, they are ignored as everywhere.
    """

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any, info: ValidationInfo) -> Any:
        if info.mode != "python" or not isinstance(given, dict):
            return given
        fields, known = cast("dict[str, Any]", given), cls.__pydantic_fields__
        if not fields.keys() <= known.keys():
            unknown = ", ".join(repr(name) for name in fields if name not in known)
            raise TypeError(f"{cls.__name__} has no field {unknown}; there are: {', '.join(known)}")
        return fields


class WireContract(Contract):
    """A message from or for an external system; its fields are camelCase there."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True
    )
