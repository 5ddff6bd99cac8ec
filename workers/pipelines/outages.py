"""Outages as runs that people list and show; every worker serves them, and they are no pipeline."""

import re
from typing import Final

from contracts.dependencies import (
    OUTAGE,
    OUTAGE_PREFIX,
    OUTAGES,
    Dependency,
    OutageState,
    OutageStatus,
)
from workers.pipelines.base import RunGroup, RunKind


def _dependency(found: re.Match[str]) -> Dependency:
    return Dependency(found["dependency"])


def _title(dependency: Dependency) -> str:
    return f"The {dependency.label} cannot be used"


OUTAGE_RUNS: Final = RunGroup(
    name=OUTAGES,
    title="Outage",
    runs=(
        RunKind(
            workflow=OUTAGE,
            pattern=re.compile(f"{OUTAGE_PREFIX}/(?P<dependency>{'|'.join(Dependency)})"),
            parse=_dependency,
            title=_title,
            status=OutageStatus,
            states=tuple(OutageState),
        ),
    ),
    verbs="workers.services.outages:VERBS",
    show="workers.cli.outages:show_run",
)
