"""Names in job settings: `in/{accountId}/{time:%Y%m%d}/{name}`.

What depends on the event is resolved once; the parts that stand for the name of a file are filled
when the file is known. A value of the event can never lead out of the folder that a template names.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Final, cast
from urllib.parse import quote
from zoneinfo import ZoneInfo

from contracts.transfers import Action, CallHttp, FileNotice, ReadFile
from domain.errors import RuleViolation
from domain.transfers.paths import escaped

FILE_PARTS: Final = ("name", "stem", "suffix")
"""Filled for each file: `orders.csv`, `orders`, `.csv`."""
DAYS: Final[Mapping[str, int]] = MappingProxyType({"time": 0, "yesterday": -1, "tomorrow": 1})
"""The time of the event in the job's zone; the same time a day before and after."""
DIRECTIVES: Final = frozenset("YymdHIMSfjpaAbBzGVuUW%")
"""Of `strftime`, as in `{time:%Y-%m-%d}`."""
LONGEST: Final = 1_024
_DATE: Final = "%Y%m%d"
_PART: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class Kind(Enum):
    """What a template is for."""

    PATH = "path"
    """A path at an endpoint, from its root."""
    PATTERN = "pattern"
    """A path in which the settings may have wildcards; those of the event stand for themselves."""
    URL = "url"
    TEXT = "text"


_PATHS: Final = ("path", "move_to", "on_failure_move_to", "name")
_TEXTS: Final = ("type", "source", "subject", "account_id", "expected")
_MANY: Final = ("data", "headers")


@dataclass(frozen=True, slots=True)
class Facts:
    """What templates of a run may refer to."""

    event: FileNotice
    zone: str
    """Of the job: in which dates are meant."""
    queue: str = ""
    job: str = ""


def names_of(action: Action, facts: Facts) -> dict[str, str]:
    """All templates of an action, resolved, by the names of their fields.

    Raises:
        RuleViolation: Some cannot be resolved; the message names their fields.
    """
    if problems := list(problems_of_names(action, facts)):
        raise RuleViolation("; ".join(problems))
    return {field: resolve(text, facts, kind) for field, text, kind in _templates(action)}


def problems_of_names(action: Action, facts: Facts) -> Iterator[str]:
    """Why templates of an action cannot be resolved: all reasons, each with its field."""
    for field, template, kind in _templates(action):
        for problem in problems_of_template(template, facts, kind):
            yield f"{action.action}, {field}: {problem}"


def _templates(action: Action) -> Iterator[tuple[str, str, Kind]]:
    """The templates of an action with their fields and what they are for."""
    for field in (*_PATHS, *_TEXTS):
        template = getattr(action, field, None)
        if isinstance(template, str):
            yield field, template, _kind_of(action, field)
    for field in _MANY:
        for key, template in cast(Mapping[str, str], getattr(action, field, {})).items():
            yield f"{field}.{key}", template, Kind.TEXT


def _kind_of(action: Action, field: str) -> Kind:
    if isinstance(action, ReadFile) and field == "path":
        return Kind.PATTERN
    if isinstance(action, CallHttp) and field == "path":
        return Kind.URL
    return Kind.PATH if field in _PATHS else Kind.TEXT


def resolve(template: str, facts: Facts, kind: Kind = Kind.TEXT) -> str:
    """Resolve what depends on the event; braces that stay are doubled, except of parts of files.

    Raises:
        RuleViolation: A part is not known, the event has no such value, or it would lead elsewhere.
    """
    resolved, problems = _resolved(template, facts, kind)
    if problems:
        raise RuleViolation("; ".join(problems))
    return resolved


def problems_of_template(template: str, facts: Facts, kind: Kind = Kind.TEXT) -> Sequence[str]:
    """Why a template cannot be resolved: all reasons."""
    return _resolved(template, facts, kind)[1]


def _resolved(template: str, facts: Facts, kind: Kind) -> tuple[str, Sequence[str]]:
    problems: list[str] = []

    def replace(part: re.Match[str]) -> str:
        try:
            return _substitute(part, template, facts, kind)
        except RuleViolation as error:
            problems.append(str(error))
            return "x"

    resolved = _PART.sub(replace, template)
    if kind in (Kind.TEXT, Kind.URL):
        return resolved, problems
    try:
        # The name of a file that is not known yet stands for itself here.
        check_path(filled(resolved, "name"))
    except RuleViolation as error:
        problems.append(str(error))
    return resolved.removeprefix("/"), problems


def _substitute(part: re.Match[str], template: str, facts: Facts, kind: Kind) -> str:
    """What stands in the place of one part.

    Raises:
        RuleViolation: It cannot be resolved.
    """
    whole, text = part[0], part[1]
    if whole in ("{{", "}}"):
        return whole
    if text is None:
        raise RuleViolation(f"a brace in {template!r} has no other; write {{{{ for a brace")
    name, _, form = text.partition(":")
    if name in FILE_PARTS and not form:
        if kind is Kind.PATTERN:
            raise RuleViolation(f"{{{name}}} is not known before a file is read")
        return whole
    value = _value(name, form, facts)
    _refuse_hostile(name, value, kind)
    if kind is Kind.URL:
        value = quote(value, safe="")
    if kind is Kind.PATTERN:
        value = escaped(value)
    return value.replace("{", "{{").replace("}", "}}")


def filled(resolved: str, name: str) -> str:
    """A resolved template with the name of a file.

    Args:
        resolved: As `resolve` returned it.
        name: Of the file; folders within an archive stand before it.
    """
    path = PurePosixPath(name)
    # As people mean it: the stem of `a.tar.gz` is `a.tar`; folders belong to the stem.
    stem = str(path.with_suffix("")) if path.suffix else name
    values = {"name": name, "stem": stem, "suffix": path.suffix}

    def replace(found: re.Match[str]) -> str:
        return found[0][0] if found[1] is None else values.get(found[1], found[0])

    return _PART.sub(replace, resolved)


def plain(resolved: str) -> str:
    """A resolved template that names no file."""
    return _PART.sub(lambda found: found[0][0] if found[1] is None else found[0], resolved)


def names_file(resolved: str) -> bool:
    """Whether a resolved template names a file."""
    return any(found[1] in FILE_PARTS for found in _PART.finditer(resolved))


def check_path(path: str) -> None:
    """Refuse a path that leaves its folder, or that endpoints understand differently.

    Raises:
        RuleViolation: What is wrong with it.
    """
    if len(path) > LONGEST:
        raise RuleViolation(f"the path has {len(path):,} characters; {LONGEST:,} are accepted")
    if any(character < " " or character in "\\\x7f" for character in path):
        raise RuleViolation(f"the path {path!r} holds a backslash or a control character")
    if any(part in ("", ".", "..") for part in path.removeprefix("/").split("/")):
        raise RuleViolation(f"the path {path!r} holds an empty, '.' or '..' segment")


def _value(name: str, form: str, facts: Facts) -> str:
    event = facts.event
    if name in DAYS:
        return _moment(event.time, DAYS[name], form or _DATE, facts.zone)
    if form:
        raise RuleViolation(f"{{{name}:...}}: only time, yesterday and tomorrow have a format")
    plain = {
        "id": event.id,
        "accountId": event.account_id,
        "source": event.source,
        "type": event.type,
        "subject": event.subject,
        "queue": facts.queue,
        "job": facts.job,
    }
    if name in plain:
        return plain[name]
    if name.startswith("data."):
        return _datum(name, event.data)
    known = ", ".join((*FILE_PARTS, *plain, *DAYS, "data.NAME"))
    raise RuleViolation(f"{{{name}}} is not known; known are {known}")


def _datum(name: str, data: Mapping[str, Any]) -> str:
    value: Any = data
    for key in name.split(".")[1:]:
        value = cast(Mapping[str, Any], value).get(key) if isinstance(value, dict) else None
    match value:
        case bool():
            return str(value).lower()
        case str() | int() | float():
            if value != "":
                return str(value)
        case _:
            pass
    raise RuleViolation(f"the event has no text or number {name}")


def _moment(time: datetime, days: int, form: str, zone: str) -> str:
    for found in re.finditer(r"%(.?)", form):
        if found[1] not in DIRECTIVES or not found[1]:
            known = " ".join(f"%{each}" for each in sorted(DIRECTIVES))
            raise RuleViolation(f"%{found[1]} is not a directive of dates; known are {known}")
    local = time.astimezone(zone_of(zone))
    # The day before is one of the calendar: it may have 23 or 25 hours. A sum forgets which of two
    # equal hours it was made of.
    return (local + timedelta(days=days)).replace(fold=local.fold).strftime(form)


def zone_of(name: str) -> ZoneInfo:
    """A time zone.

    Raises:
        RuleViolation: There is none of that name.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise RuleViolation(
            f"there is no time zone {name!r}; write one as Europe/Berlin"
        ) from error


def _refuse_hostile(name: str, value: str, kind: Kind) -> None:
    if any(character < " " or character == "\x7f" for character in value):
        raise RuleViolation(f"{{{name}}} holds a control character")
    if kind is Kind.TEXT:
        return
    if {".", ".."} & set(value.split("/")):
        raise RuleViolation(f"{{{name}}} is {value!r}: it would lead to another folder")
