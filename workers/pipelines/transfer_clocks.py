"""What transfers do by the clock: schedules of watches and of expected files."""

import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from contracts.answers import Answer
from contracts.transfers.names import TASK_QUEUE
from contracts.transfers.watches import (
    EXPECTED_CHECK,
    EXPECTED_FILES,
    EXPECTED_PREFIX,
    GAP_PREFIX,
    WATCH_LOOK,
    WATCH_PREFIX,
    ExpectedOrder,
    ExpectedState,
    GapView,
    LookOrder,
)
from workers.pipelines.base import RunKind

if TYPE_CHECKING:
    from workers.pipelines.schedules import Declared

SCHEDULE_PREFIXES: Final = (WATCH_PREFIX, EXPECTED_PREFIX)
_NAME: Final = r"[a-z0-9][a-z0-9-]*?"


def _scheduled(prefix: str, workflow: str) -> RunKind:
    pattern = re.compile(rf"schedule/{prefix}(?P<name>{_NAME})-(?P<at>[0-9]{{4}}-.*T.*)")
    return RunKind(
        workflow, pattern, lambda found: found["name"], scheduled=True, is_document=False
    )


def _gap(found: re.Match[str]) -> tuple[str, date]:
    return found["name"], date.fromisoformat(found["day"])


RUNS: Final = (
    _scheduled(WATCH_PREFIX, WATCH_LOOK),
    _scheduled(EXPECTED_PREFIX, EXPECTED_CHECK),
    RunKind(
        workflow=EXPECTED_FILES,
        pattern=re.compile(
            rf"{GAP_PREFIX}/(?P<name>{_NAME})/(?P<day>\d{{4}}-\d\d-\d\d)/(?P<state>[a-z-]+)"
        ),
        parse=_gap,
        title=lambda key: f"Expected files: {key[0]}, {key[1]}",
        status=GapView,
        answers={"skip": Answer},
        states=("parked", *(each.value for each in ExpectedState if each.value != "pending")),
        is_document=False,
    ),
)


def declared(environment: Mapping[str, str]) -> "Mapping[str, Declared] | None":
    """The schedules that the file of watches declares; None: none is named.

    Raises:
        SettingsError: The file is missing or wrong.
    """
    from workers.pipelines.schedules import Declared, every
    from workers.settings.transfer_watches import clocks_of

    clocks = clocks_of(environment)
    if clocks is None:
        return None
    # A look, or a check, finds whatever one that was missed would have found.
    catch_up = timedelta(minutes=10)
    watches = {
        f"{WATCH_PREFIX}{each.name}": Declared(
            pipeline=TASK_QUEUE,
            workflow=WATCH_LOOK,
            task_queue=TASK_QUEUE,
            input=LookOrder(watch=each),
            at=every(each.every_minutes),
            catch_up=catch_up,
        )
        for each in clocks.watches.values()
    }
    expected = {
        f"{EXPECTED_PREFIX}{each.name}": Declared(
            pipeline=TASK_QUEUE,
            workflow=EXPECTED_CHECK,
            task_queue=TASK_QUEUE,
            input=ExpectedOrder(expectation=each),
            at=every(each.every_minutes),
            catch_up=catch_up,
        )
        for each in clocks.expected.values()
    }
    return {**watches, **expected}
