"""What a watch makes of the files that it sees: which are new, which are complete, what is sent."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from contracts.transfers.watches import SeenFile, Watch
from domain.errors import RuleViolation
from domain.transfers.paths import TEMPORARY_PREFIX, pattern_problem, printable, split

_MILLIS: Final = "milliseconds"
_NUMBER: Final = re.compile("[0-9]+")
_DIGITS: Final = 20


@dataclass(frozen=True, slots=True)
class Version:
    """A file, as it is listed."""

    path: str
    size: int
    changed: datetime | None
    tag: str | None


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a look makes of one file."""

    file: SeenFile
    is_new: bool
    """It has to be written down: it was not there, or was another one."""
    due: bool
    """It is complete, and its event was not sent."""


def check_watch(watch: Watch) -> None:
    """Check what only a rule can.

    Raises:
        RuleViolation: Its path is none.
    """
    if (problem := pattern_problem(watch.path)) is not None:
        raise RuleViolation(f"watch {watch.name}: {problem}")


def concerns(watch: Watch, path: str) -> bool:
    """Whether a listed file is watched: markers, and files of docflow's own, are not."""
    if split(path)[1].startswith(TEMPORARY_PREFIX):
        return False
    return watch.marker is None or not path.endswith(watch.marker)


def sighting(
    watch: Watch,
    version: Version,
    before: SeenFile | None,
    markers: Collection[str],
    now: datetime,
) -> Sighting:
    """Judge one file.

    Args:
        watch: Whose look this is.
        version: As it is listed now.
        before: As it was seen last; None: it was not.
        markers: Paths of files that were listed before the files.
        now: The time.
    """
    is_same = before is not None and before.vanished is None and is_version(before, version)
    if is_same:
        assert before is not None
        file = before
    else:
        file = SeenFile(
            path=version.path,
            size=version.size,
            changed=version.changed,
            tag=version.tag,
            since=now,
        )
    due = file.event is None and file.problem is None and _is_complete(watch, file, markers, now)
    return Sighting(file, not is_same, due)


def is_version(before: SeenFile, version: Version) -> bool:
    """Whether a file is as it was seen, as far as its size, time and tag tell."""
    seen = (before.size, before.changed, before.tag)
    return seen == (version.size, version.changed, version.tag)


def all_back(gone: Sequence[SeenFile], listed: Iterable[Version]) -> bool:
    """Whether several files that had all gone at once are all back as they were.

    So it is with a share that was unmounted for a while: they are the same files, and none is new.
    Where some of them come back, a person has put them there.
    """
    versions = {each.path: each for each in listed}
    return len(gone) > 1 and all(
        each.path in versions and is_version(each, versions[each.path]) for each in gone
    )


def never_sent(gone: Iterable[SeenFile], listed: Iterable[Version] = ()) -> list[str]:
    """Paths, for people, of files that are gone and were not sent; not of those that are back."""
    versions = {each.path: each for each in listed}
    return [
        printable(each.path)
        for each in gone
        if each.event is None
        and not (each.path in versions and is_version(each, versions[each.path]))
    ]


def said_of_gone(watch: Watch, names: Sequence[str], since: datetime) -> str:
    """The sentence for people about files that went with everything else, and were not sent.

    Args:
        watch: Whose.
        names: Of the files, the first few.
        since: When they were found gone.
    """
    return (
        f"nothing is at {printable(watch.path)} since {since:%Y-%m-%d %H:%M} UTC, and these files "
        f"were not sent before: {', '.join(names)}; if it is a share, see that it is mounted: they "
        "are sent once they are back"
    )


def said_of_return(files: int, failed: int, since: datetime) -> str:
    """The sentence for people about files that are back.

    Args:
        files: How many.
        failed: How many of them have a transfer that has failed.
        since: When they were found gone.
    """
    more = f", also the {failed:,} whose transfers have failed" if failed else ""
    return (
        f"{files:,} files that were all gone at {since:%Y-%m-%d %H:%M} UTC are back as they were: "
        f"they count as the same files, and none is sent again{more}; change the time of one "
        "(`touch`) to have it sent again"
    )


def _is_complete(watch: Watch, file: SeenFile, markers: Collection[str], now: datetime) -> bool:
    if watch.marker is not None:
        return f"{file.path}{watch.marker}" in markers
    # A file that was seen just now was seen once: two looks have to agree.
    return file.since < now and (now - file.since).total_seconds() >= watch.settle_seconds


def event_id(watch: Watch, file: SeenFile, *, again: bool = False) -> str:
    """Id of the event of a version: the same file with other content is another one.

    Args:
        watch: Whose.
        file: As it is seen.
        again: The version was there before, and has come back.
    """
    version = [watch.name, file.path, file.size, _time(file).isoformat(), file.tag]
    if again:
        version.append(file.since.isoformat())
    return hashlib.sha256(json.dumps(version).encode()).hexdigest()


def event_of(watch: Watch, file: SeenFile, *, again: bool = False) -> str:
    """The event of a version, the same at every attempt: JSON in structured mode."""
    return json.dumps(_fields(watch, file, again), sort_keys=True, ensure_ascii=False)


def _fields(watch: Watch, file: SeenFile, again: bool) -> Mapping[str, object]:
    return {
        "specversion": "1.0",
        "id": event_id(watch, file, again=again),
        "source": watch.source,
        "type": watch.type,
        "subject": watch.subject,
        "time": _time(file).isoformat(timespec=_MILLIS),
        "datacontenttype": "application/json",
        "data": {
            "accountId": watch.account_id,
            "fileName": split(file.path)[1],
            "path": file.path,
            "partner": watch.partner,
            "size": file.size,
            "watch": watch.name,
        },
    }


def in_turn(file: SeenFile) -> tuple[datetime, str, str]:
    """Where a file stands among those that are sent: the oldest first, then by name.

    Times of many endpoints are whole seconds: of one moment, 2.csv comes before 10.csv.
    """
    counted = _NUMBER.sub(lambda found: found[0].zfill(_DIGITS), file.path)
    return _time(file), counted, file.path


def _time(file: SeenFile) -> datetime:
    """Of the file; where the endpoint has none, when it was first seen so."""
    return file.changed or file.since
