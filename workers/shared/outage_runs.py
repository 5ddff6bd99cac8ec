"""Outages as runs that people list and show: every worker serves them; they are not a pipeline."""

import re
from dataclasses import dataclass
from typing import Final

from workers.shared.register import RunGroup, RunKind
from workflows.shared.dependencies import (
    OUTAGE,
    OUTAGE_PREFIX,
    OUTAGES,
    Dependency,
    OutageState,
    OutageStatus,
    label_of,
)


@dataclass(frozen=True)
class _Key:
    dependency: Dependency
    name: str | None
    """Which one, where there are many."""


def _key(found: re.Match[str]) -> _Key:
    return _Key(Dependency(found["dependency"]), found["name"])


def _title(key: _Key) -> str:
    return f"The {label_of(key.dependency, key.name)} cannot be used"


OUTAGE_RUNS: Final = RunGroup(
    name=OUTAGES,
    title="Outage",
    runs=(
        RunKind(
            workflow=OUTAGE,
            pattern=re.compile(
                f"{OUTAGE_PREFIX}/(?P<dependency>{'|'.join(Dependency)})(?:/(?P<name>[a-z0-9-]+))?"
            ),
            parse=_key,
            title=_title,
            status=OutageStatus,
            states=tuple(OutageState),
        ),
    ),
)
