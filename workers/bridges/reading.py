"""From the body of a message, as it came from outside, to a message that may be trusted."""

import json
import re
from collections import Counter
from typing import Any, Final, NoReturn, cast

from pydantic import ValidationError

from contracts.imports import IMPORT_MESSAGE, MESSAGE_BYTES, DocumentType, ImportMessage
from workers.bridges.verdicts import (
    DESCRIPTION_LIMIT,
    INVALID_MESSAGE,
    MALFORMED_BODY,
    UNKNOWN_DOCUMENT_TYPE,
)

PROBLEMS_LIMIT: Final = 20
"""Problems that a description names."""
PROBLEM_LIMIT: Final = 180
"""Characters that it gives to one."""

_KNOWN = frozenset(DocumentType)
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


class RefusedMessage(Exception):
    """A message that can never become an import."""

    def __init__(self, reason: str, description: str) -> None:
        super().__init__(description)
        self.reason = reason
        self.description = description[:DESCRIPTION_LIMIT]


def read_message(raw: bytes) -> ImportMessage:
    """Check a body from outside and turn it into a message.

    Raises:
        RefusedMessage: It is none; reason and description say why.
    """
    if len(raw) > MESSAGE_BYTES:
        raise RefusedMessage(
            MALFORMED_BODY, f"the body has {len(raw)} bytes; at most {MESSAGE_BYTES} are taken"
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RefusedMessage(
            MALFORMED_BODY, f"the body is not UTF-8: byte {error.start} cannot be read"
        ) from error
    document_type = _object(text).get("document_type")
    if not isinstance(document_type, str) or document_type not in _KNOWN:
        raise RefusedMessage(UNKNOWN_DOCUMENT_TYPE, _unknown(document_type))
    try:
        return IMPORT_MESSAGE.validate_json(text)
    except ValidationError as error:
        raise _invalid(error) from error


def _object(text: str) -> dict[str, Any]:
    """The JSON object of a body, refused where readers of JSON would disagree about it."""
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
        raise RefusedMessage(MALFORMED_BODY, f"the field {_shown(twice)} stands there twice")
    return data


def _no_number(text: str) -> NoReturn:
    raise RefusedMessage(MALFORMED_BODY, f"{text} is not a number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise RefusedMessage(MALFORMED_BODY, f"the number {_shown(text)} is too large")
    return number


def _bounded(text: str) -> int:
    if len(text) > 19:
        raise RefusedMessage(MALFORMED_BODY, f"the number {_shown(text)} has too many digits")
    return int(text)


def _unknown(document_type: object) -> str:
    known = ", ".join(DocumentType)
    if document_type is None:
        return f"document_type is missing; known are {known}"
    shown = _shown(document_type) if isinstance(document_type, str) else "that is no text"
    return f"document_type {shown} is not known; known are {known}"


def _invalid(error: ValidationError) -> RefusedMessage:
    problems: list[str] = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        if problem["type"] == "json_invalid":
            return RefusedMessage(MALFORMED_BODY, f"the body is not JSON: {problem['msg']}")
        # The first part of the location is the document type that chose the model.
        field = ".".join(str(part) for part in problem["loc"][1:]) or "message"
        reason = problem["msg"].removeprefix("Value error, ")
        problems.append(f"{printable(field)[:80]}: {printable(reason)[:PROBLEM_LIMIT]}")
    more = len(problems) - PROBLEMS_LIMIT
    if more > 0:
        problems[PROBLEMS_LIMIT:] = [f"and {more} more"]
    return RefusedMessage(INVALID_MESSAGE, "; ".join(problems))


def _shown(text: str) -> str:
    """Foreign text, quoted and bounded."""
    return repr(printable(text if len(text) <= 40 else f"{text[:40]}..."))


def printable(text: str) -> str:
    """Foreign text without characters that could steer a terminal or a log."""
    return "".join(character if character.isprintable() else "?" for character in text)
