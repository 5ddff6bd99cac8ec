"""Parameters of a request: those of the job type, and those of webhooks."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from contracts.base import Contract, problem_text
from contracts.jobs import JsonObject, WebhookParameters
from contracts.jobs.texts import unkept
from workers.services.bodies import printable
from workers.services.jobs.errors import FieldError, InvalidJob

ERRORS_LISTED: Final = 20
_OF_WEBHOOKS: Final = frozenset(WebhookParameters.model_fields)
HIDDEN: Final = "***"
LEVELS: Final = 64
"""Of lists and objects in a parameter: readers of JSON give up at different depths, and one that a
worker cannot read would leave its run waiting for ever."""

M = TypeVar("M", bound=Contract)


def without_secret(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as they may be recorded: with the secret masked."""
    return {
        name: HIDDEN if name == "webhook_secret" and value else value
        for name, value in parameters.items()
    }


def divided(parameters: Mapping[str, Any]) -> tuple[WebhookParameters, JsonObject]:
    """Parameters of webhooks, and those of the job.

    Raises:
        InvalidJob: One of a webhook is wrong, or a text cannot be kept as it is.
    """
    lost = islice(unkept(parameters, "parameters"), ERRORS_LISTED)
    if errors := [FieldError(printable(place)[:200], problem) for place, problem in lost]:
        raise InvalidJob(errors)
    given = {name: value for name, value in parameters.items() if name in _OF_WEBHOOKS}
    rest = {name: value for name, value in parameters.items() if name not in _OF_WEBHOOKS}
    return validated(WebhookParameters, given), rest


def validated(model: type[M], given: Mapping[str, Any]) -> M:
    """Parameters as their model.

    Raises:
        InvalidJob: They do not fit, or one is not known: it would be ignored otherwise.
    """
    errors = [
        FieldError(f"parameters.{printable(name)[:100]}", f"is not known; {_known(model)}")
        for name in sorted(given.keys() - _names(model))
    ]
    deep = [
        FieldError(
            f"parameters.{printable(name)[:100]}", f"is nested more than {LEVELS} levels deep"
        )
        for name, value in given.items()
        if _is_deep(value)
    ]
    if deep:
        raise InvalidJob([*errors, *deep])
    try:
        parsed = model.model_validate(dict(given))
    except ValidationError as error:
        known = {each.location for each in errors}
        errors += [each for each in errors_of(error) if each.location not in known]
        raise InvalidJob(errors) from None
    if errors:
        raise InvalidJob(errors)
    return parsed


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(LEVELS):
        level = [inner for each in level for inner in _within(each)]
    return bool(level)


def _within(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return cast(Mapping[Any, object], value).values()
    return cast(Sequence[object], value) if isinstance(value, list | tuple) else ()


def typed(model: type[BaseModel] | None, texts: Mapping[str, str]) -> JsonObject:
    """Parameters that a person has typed: JSON where it fits the field, else the text as it is.

    Args:
        model: Parameters of the job type; None: it is not installed.
        texts: Name to what was typed.
    """
    return {name: _typed(model, name, text) for name, text in texts.items()}


def _typed(model: type[BaseModel] | None, name: str, text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    field = (model and model.model_fields.get(name)) or WebhookParameters.model_fields.get(name)
    if field is None or field.annotation is None:
        return value
    fields: TypeAdapter[Any] = TypeAdapter(field.annotation)
    for each in (value, text):
        try:
            fields.validate_python(each)
        except ValidationError:
            continue
        return each
    return value


def errors_of(error: ValidationError, *, within: str = "parameters") -> Iterator[FieldError]:
    """The problems of pydantic, without the values that they are about."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    for problem in found[:ERRORS_LISTED]:
        location = ".".join(str(part) for part in (within, *problem["loc"]) if part != "")
        yield FieldError(printable(location), problem_text(problem)[:300])


def _names(model: type[BaseModel]) -> frozenset[str]:
    aliases = (each.alias for each in model.model_fields.values())
    return frozenset((*model.model_fields, *filter(None, aliases)))


def _known(model: type[BaseModel]) -> str:
    names = ", ".join(model.model_fields)
    return f"known are {names}" if names else "this type has no parameters"
