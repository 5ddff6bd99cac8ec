"""What every body from outside has to be, and the verdict on a message."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, cast

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from workers.shared.services.errors import InvalidRequest
from workflows.shared import errors
from workflows.shared.contracts import problem_text

MALFORMED_BODY: Final = "MalformedBody"
"""The body is not a JSON object that docflow can read."""
UNKNOWN_DOCUMENT_TYPE: Final = "UnknownDocumentType"
"""`document_type` is missing, or names nothing that docflow imports."""
UNKNOWN_EVENT_TYPE: Final = "UnknownEventType"
"""`eventType` is missing, or names no event that docflow takes from this queue."""
INVALID_MESSAGE: Final = "InvalidMessage"
"""Fields of the message are missing or wrong."""
NOT_ACCEPTED: Final = "NotAccepted"
"""It was not accepted in any of its deliveries, although everything that docflow needs answers."""
KEY_REUSED: Final = errors.KEY_REUSED
"""The run of this key was started by a message with other content."""

DESCRIPTION_LIMIT: Final = 4096
"""Characters of a dead letter description that Service Bus keeps."""


@dataclass(frozen=True, slots=True)
class Settle:
    """Temporal has the work: take the message off the queue."""

    workflow_id: str
    duplicate: bool = False
    """The same message came before; its run may be open or over."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The message can never be accepted, and where there is a record, it is recorded: set it
    aside."""

    reason: str
    """One of the constants of this module."""
    description: str
    """Names the fields and what is wrong with them; at most `DESCRIPTION_LIMIT` characters."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """The message is not accepted now: give it back."""

    reason: str
    passes: bool = True
    """A service that docflow needs is unavailable or does not let us in; False: it may be the
    message that it refuses."""


Verdict = Settle | DeadLetter | Abandon


PROBLEMS_LIMIT: Final = 20
"""Problems that a description names."""
PROBLEM_LIMIT: Final = 180
"""Characters that it gives to one."""
CORRECTION_BYTES: Final = 1 << 20
"""Of what corrects a run; an update of Temporal takes 2 MB."""

_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


class Body(BaseModel):
    """Input with camelCase names, read strictly: an unknown field is a mistake."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        serialize_by_alias=True,
        extra="forbid",
        frozen=True,
    )


class RefusedMessage(Exception):
    """A message that can never be accepted.

    Attributes:
        reason: One of the constants of `workers.shared.services.bodies`.
        description: What is wrong with it, for people.
    """

    def __init__(self, reason: str, description: str) -> None:
        super().__init__(description)
        self.reason = reason
        self.description = description[:DESCRIPTION_LIMIT]


def text_of(raw: bytes, most: int) -> str:
    """The text of a body.

    Args:
        raw: The body.
        most: Bytes that it may have.

    Raises:
        RefusedMessage: It has more, or is not UTF-8.
    """
    if len(raw) > most:
        raise RefusedMessage(
            MALFORMED_BODY, f"the body has {len(raw)} bytes; at most {most} are accepted"
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RefusedMessage(
            MALFORMED_BODY, f"the body is not UTF-8: byte {error.start} cannot be read"
        ) from error


def object_of(text: str) -> dict[str, Any]:
    """The JSON object of a body.

    Raises:
        RefusedMessage: It is none, or readers of JSON would disagree about it.
    """
    if _NUL.search(text):
        raise RefusedMessage(MALFORMED_BODY, "the body holds NUL characters (\\u0000)")
    try:
        data = json.loads(
            text,
            object_pairs_hook=_without_repeats,
            parse_constant=_no_number,
            parse_float=_finite,
            parse_int=_bounded,
        )
    except json.JSONDecodeError as error:
        raise RefusedMessage(
            MALFORMED_BODY,
            f"the body is not JSON: {error.msg} at line {error.lineno} column {error.colno}",
        ) from error
    except RecursionError as error:
        raise RefusedMessage(MALFORMED_BODY, "the body is nested too deeply") from error
    if not isinstance(data, dict):
        raise RefusedMessage(MALFORMED_BODY, "the body is not a JSON object { ... }")
    return cast(dict[str, Any], data)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise RefusedMessage(MALFORMED_BODY, f"the field {shown(twice)} appears twice")
    return data


def _no_number(text: str) -> NoReturn:
    raise RefusedMessage(MALFORMED_BODY, f"{text} is not a number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise RefusedMessage(MALFORMED_BODY, f"the number {shown(text)} is too large")
    return number


def _bounded(text: str) -> int:
    if len(text) > 19:
        raise RefusedMessage(MALFORMED_BODY, f"the number {shown(text)} has too many digits")
    return int(text)


def invalid(error: ValidationError, within: int = 1) -> RefusedMessage:
    """Errors of a contract in a body, by the names of its fields, without values.

    Args:
        error: What is wrong.
        within: Parts of each location that name no field: of a union, the type that chose the
            contract.
    """
    problems: list[str] = []
    found = error.errors(include_url=False, include_context=False, include_input=False)
    for problem in found[:PROBLEMS_LIMIT]:
        if problem["type"] == "json_invalid":
            return RefusedMessage(MALFORMED_BODY, f"the body is not JSON: {problem['msg']}")
        field = ".".join(str(part) for part in problem["loc"][within:]) or "message"
        reason = problem_text(problem)
        problems.append(f"{printable(field)[:80]}: {printable(reason)[:PROBLEM_LIMIT]}")
    more = len(found) - PROBLEMS_LIMIT
    if more > 0:
        problems.append(f"and {more} more")
    return RefusedMessage(INVALID_MESSAGE, "; ".join(problems))


def kind_of(data: Mapping[str, Any], field: str, known: Sequence[str], unknown_reason: str) -> str:
    """Which kind of message a body is.

    Args:
        data: The body.
        field: Names the kind.
        known: Every kind that is accepted.
        unknown_reason: Why another one is refused.

    Raises:
        RefusedMessage: The field is missing, or names no kind that is known.
    """
    kind = data.get(field)
    if isinstance(kind, str) and kind in known:
        return kind
    from workflows.shared.declared_fields import meant

    near = meant(kind, known) if isinstance(kind, str) else ""
    listed = f"{near}known are {', '.join(known)}"
    if kind is None:
        raise RefusedMessage(unknown_reason, f"{field} is missing; {listed}")
    problem = f"{shown(kind)} is not known" if isinstance(kind, str) else "is not a string"
    raise RefusedMessage(unknown_reason, f"{field} {problem}; {listed}")


def shown(text: str) -> str:
    """Foreign text, quoted and bounded."""
    return repr(printable(text if len(text) <= 40 else f"{text[:40]}..."))


def printable(text: str) -> str:
    """Foreign text without characters that could steer a terminal or a log."""
    return "".join(character if character.isprintable() else "?" for character in text)


def correction_of(correction: bytes | None, what: str) -> dict[str, Any] | None:
    """The JSON object that corrects a run, read as strictly as a message; None: there is none.

    Args:
        correction: As it was given.
        what: It holds, for messages.

    Raises:
        InvalidRequest: It is not a JSON object, or readers of JSON would disagree about it.
    """
    if correction is None:
        return None
    try:
        return object_of(text_of(correction, CORRECTION_BYTES))
    except RefusedMessage as error:
        raise InvalidRequest(f"{what}: {error.description}") from error
