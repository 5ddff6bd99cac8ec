"""Texts of a Primavera file as values: codes, texts, exact numbers, naive local times."""

import re
from datetime import datetime
from decimal import Decimal
from functools import lru_cache

from contracts.problems import Problem

CODE_LENGTH = 255
"""Characters of a code; Primavera itself allows 120 at most."""
PATH_LENGTH = 1000
"""Characters of a dotted WBS path: it is part of a key, and databases limit the size of keys."""
TEXT_LENGTH = 4000
"""Characters of any other text."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d{1,2})?", re.ASCII)
_SCALE = Decimal("0.000001")
_LIMIT = Decimal(10) ** 13
# One digit less than a column holds: regular and overtime values are added up.


@lru_cache(maxsize=50_000)
def parse_number(raw: str) -> Decimal:
    """Exact number with at most 6 decimals, half to even beyond.

    Primavera never groups digits, so that a comma is the decimal sign of the machine that wrote
    the file.

    Raises:
        ValueError: It is not a number, or has more than 13 digits before the point.
    """
    if len(raw) > 64 or not _NUMBER.fullmatch(raw):
        raise ValueError("is not a number")
    number = Decimal(raw.replace(",", "."))
    if abs(number) >= _LIMIT:
        raise ValueError("has more than 13 digits before the decimal point")
    exponent = number.as_tuple().exponent
    return number.quantize(_SCALE) if isinstance(exponent, int) and exponent < -6 else number


@lru_cache(maxsize=50_000)
def parse_moment(raw: str) -> datetime:
    """Time as it stands in the file; an offset, should there be one, is dropped.

    Raises:
        ValueError: It is not a date.
    """
    try:
        return datetime.fromisoformat(raw).replace(tzinfo=None)
    except ValueError:
        raise ValueError("is not a date of the form 2025-01-31 08:00") from None


def clean_code(raw: str) -> str:
    """A code on one line, without control characters or blanks around it."""
    code = raw.strip()
    return " ".join(_CONTROL.sub(" ", code).split()) if _CONTROL.search(code) else code


def decimal_text(number: Decimal) -> str:
    """The shortest plain notation, the same for `80`, `80.0` and `8E1`."""
    text = f"{number:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("", "-0") else text


def problem(line: int | None, column: str | None, value: str | None, reason: str) -> Problem:
    """A problem whose parts are cut to what the contract allows."""
    return Problem(
        line=line,
        column=column,
        value=None if value is None else value[:200],
        reason=reason[:500],
    )


class Values:
    """Reads values and remembers what was wrong with them.

    A value that cannot be read becomes None and leaves a remark; its row still goes in.

    Attributes:
        remarks: What has gathered since the list was last emptied.
    """

    def __init__(self) -> None:
        self.remarks: list[Problem] = []

    def number(self, line: int, column: str, raw: str) -> Decimal | None:
        """Exact number; None, and never 0, when there is nothing."""
        raw = raw.strip()
        if not raw:
            return None
        try:
            return parse_number(raw)
        except ValueError as error:
            self.remark(line, column, raw, f"{error}; the value was left empty")
            return None

    def integer(self, line: int, column: str, raw: str) -> int | None:
        """Whole number of at most 32 bits."""
        number = self.number(line, column, raw)
        if number is None:
            return None
        if number != number.to_integral_value() or abs(number) >= 2**31:
            self.remark(line, column, raw, "is not a whole number; the value was left empty")
            return None
        return int(number)

    def moment(self, line: int, column: str, raw: str) -> datetime | None:
        """Naive local time."""
        raw = raw.strip()
        if not raw:
            return None
        try:
            return parse_moment(raw)
        except ValueError as error:
            self.remark(line, column, raw, f"{error}; the value was left empty")
            return None

    def text(self, line: int, column: str, raw: str) -> str | None:
        """Text without blanks around it; None when nothing is left."""
        text = raw.strip()
        if len(text) > TEXT_LENGTH:
            self.remark(line, column, text, f"is longer than {TEXT_LENGTH} characters; it was cut")
            text = text[:TEXT_LENGTH]
        return text or None

    def remark(self, line: int, column: str, raw: str, reason: str) -> None:
        """Remember what is wrong with a value of a row that is still loaded."""
        self.remarks.append(problem(line, column, raw, reason))
