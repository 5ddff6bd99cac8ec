"""Texts that tables, histories and messages can hold."""

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, cast

from pydantic import AfterValidator

NUL: Final = "holds a NUL character, which databases do not keep"
HALF: Final = "holds half of a surrogate pair, which is not a character"


def text_problem(text: str) -> str | None:
    """Why a text cannot be kept as it is; None: it can."""
    if "\0" in text:
        return NUL
    try:
        text.encode()
    except UnicodeEncodeError:
        return HALF
    return None


def unkept(value: Any, location: str) -> Iterator[tuple[str, str]]:
    """Where in a value of JSON texts cannot be kept, and why."""
    waiting = [(location, value)]
    while waiting:
        place, each = waiting.pop()
        match each:
            case str():
                if problem := text_problem(each):
                    yield place, problem
            case Mapping():
                for name, inner in cast(Mapping[str, Any], each).items():
                    waiting += ((f"{place}.{name}", part) for part in (name, inner))
            case list() | tuple():
                parts = enumerate(cast("list[Any]", each))
                waiting += ((f"{place}.{at}", part) for at, part in parts)
            case _:
                pass


def _shown(text: str) -> str:
    if problem := text_problem(text):
        raise ValueError(problem)
    if not text.strip():
        raise ValueError("is blank")
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise ValueError("holds a control character")
    return text


ShownName = Annotated[str, AfterValidator(_shown)]
"""What people call something: not blank, in one line, without what steers a terminal."""
