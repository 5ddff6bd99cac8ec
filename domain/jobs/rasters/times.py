"""When a raster was acquired: from a parameter, a tag or a named pattern; never invented."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final

from contracts.jobs.rasters import RasterFacts, RasterParameters
from domain.errors import RuleViolation

# Other digits after a sign number the files of a moment: they are not an offset.
_OFFSET: Final = r"(?:Z|[+-](?:0\d|1[0-4]):?(?:00|15|30|45)(?!\d))"

PATTERNS: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        "sentinel": re.compile(r"(?<!\d)(?P<t>\d{8}T\d{6}(?!\d)" + _OFFSET + "?)"),
        "landsat": re.compile(r"^L[A-Z]\d{2}_[A-Z0-9]+_\d{6}_(?P<t>\d{8})_"),
        "planet": re.compile(r"^(?P<t>\d{8}_\d{6}(?!\d)" + _OFFSET + "?)"),
        "date": re.compile(r"(?<!\d)(?P<t>\d{4}-\d{2}-\d{2})(?!\d)"),
        "compact": re.compile(r"(?<!\d)(?P<t>\d{8})(?!\d)"),
        "timestamp": re.compile(
            r"(?P<t>\d{4}-\d{2}-\d{2}T\d{2}[:-]?\d{2}[:-]?\d{2}"
            # Parts of a second count where an offset follows them: else they may be another number.
            r"(?:(?:\.\d{1,6})?" + _OFFSET + ")?)"
        ),
    }
)
"""Name to where the name of a file holds its time; the first match counts."""
CERTAIN_TAGS: Final = (("IMAGERY", "ACQUISITIONDATETIME"), ("", "NITF_IDATIM"))
"""Tags that mean nothing else. `TIFFTAG_DATETIME` is when the file was written, as a rule."""

_INSTANTS: Final = (
    "%Y-%m-%dT%H:%M:%S.%f",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S",
    "%Y:%m:%d %H:%M:%S",
    "%Y%m%dT%H%M%S",
    "%Y%m%d_%H%M%S",
    "%Y-%m-%dT%H%M%S",
    "%Y-%m-%dT%H-%M-%S",
    "%Y-%m-%dT%H%M%S.%f",
    "%Y-%m-%dT%H-%M-%S.%f",
    "%Y%m%d%H%M%S",
)
_DAYS: Final = ("%Y-%m-%d", "%Y:%m:%d", "%Y%m%d")


@dataclass(frozen=True, slots=True)
class Acquired:
    """An instant (`start` is `end`) or a range."""

    start: datetime
    end: datetime
    source: str
    """Where it was found, in words."""

    @property
    def instant(self) -> datetime | None:
        """The moment; None: it is a range."""
        return self.start if self.start == self.end else None


def acquired(parameters: RasterParameters, facts: RasterFacts, filename: str) -> Acquired | None:
    """When a raster was acquired; None: nothing says it, so a person has to.

    Raises:
        RuleViolation: What should say it is there and is not a time.
    """
    if parameters.datetime is not None:
        return _range(parameters.datetime, "parameter datetime")
    if (tag := parameters.datetime_tag) is not None:
        value = next((tags[tag] for tags in facts.tags.values() if tag in tags), None)
        return None if value is None else _range(value, f"tag {tag}")
    if (name := parameters.datetime_pattern) is not None:
        return _by_pattern(name, filename)
    for domain, tag in CERTAIN_TAGS:
        if value := facts.tags.get(domain, {}).get(tag):
            return _range(value, f"tag {tag}")
    return None


def time_said(time: str | None, pattern: str | None, filename: str) -> Acquired | None:
    """When data without tags were acquired; None: nothing says it, so a person has to.

    Raises:
        RuleViolation: What should say it is there and is not a time.
    """
    if time is not None:
        return _range(time, "parameter datetime")
    return None if pattern is None else _by_pattern(pattern, filename)


def is_mistyped(time: str | None, pattern: str | None) -> bool:
    """Whether a parameter that a person gave is why there is no time: it can be asked for again."""
    return time is not None or pattern not in (None, *PATTERNS)


def _by_pattern(name: str, filename: str) -> Acquired | None:
    pattern = PATTERNS.get(name)
    if pattern is None:
        raise RuleViolation(
            f"there is no pattern {name!r} for times in names; there are {', '.join(PATTERNS)}"
        )
    found = pattern.search(filename.rsplit("/", 1)[-1])
    return None if found is None else _range(found["t"], f"pattern {name} of the file's name")


def _range(text: str, source: str) -> Acquired:
    first, slash, last = text.strip().partition("/")
    start, end = _moment(first, source)
    if slash:
        _, end = _moment(last, source)
    if end < start:
        raise RuleViolation(f"the {source} ends before it starts: {text!r}")
    return Acquired(start, end, source)


def _moment(text: str, source: str) -> tuple[datetime, datetime]:
    """First and last moment that a text means; a day is a range. Without a zone it is UTC."""
    text = text.strip()
    for form in _DAYS:
        if (day := _parsed(text, form)) is not None:
            return day, day + timedelta(days=1, microseconds=-1)
    for form in _INSTANTS:
        if (moment := _parsed(text.removesuffix("Z"), form)) is not None:
            return moment, moment
        if (moment := _parsed(text, f"{form}%z")) is not None:
            return moment, moment
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise RuleViolation(
            f"the {source} is not a time: {text[:60]!r}; write 2024-05-31T10:00:00Z, a day, or"
            " start/end"
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment, moment


def _parsed(text: str, form: str) -> datetime | None:
    try:
        moment = datetime.strptime(text, form)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
