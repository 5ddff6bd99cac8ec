"""Rules of the whole suite."""

import os
import signal
from collections.abc import Generator

import pytest

from tests.support.chaos import load_profile

load_profile()

LONGEST_FIRST = ("crash", "workflows", "e2e", "adapters", "gateway")
"""Folders whose files take longest: begun last, one would be waited for alone."""


def pytest_configure() -> None:
    """Processes under test can be interrupted.

    A shell starts background jobs with SIGINT ignored, and every child would inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Random examples are chaos; processes that share the files get the longest first."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.chaos)
    if hasattr(config, "workerinput"):
        items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    turns = (LONGEST_FIRST.index(part) for part in item.path.parts if part in LONGEST_FIRST)
    return next(turns, len(LONGEST_FIRST))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fill_hole(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    # A module that is skipped never gets as far as a test.
    report = yield
    _fill_hole(report)
    return report


def _fill_hole(report: pytest.TestReport | pytest.CollectReport) -> None:
    """A skipped test is a hole: on a developer's machine it is shown, in CI it fails.

    The process that runs the test decides, so that it does not matter how many there are.
    """
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{report.longrepr}: a test that is skipped fails in CI"
