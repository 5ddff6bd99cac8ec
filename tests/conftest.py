"""Rules of the whole suite."""

import asyncio
import ctypes
import gc
import os
import shutil
import signal
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stack.clamd import clamd_program
from stack.postgres import postgis_programs
from tests.support.chaos import CHAOS, load_profile
from tests.support.fresh_database import DATABASES

if TYPE_CHECKING:
    from tests.support.distribution import SharedFixtures
    from tests.support.jobs.postgis import PostgisServer

load_profile()

REAL_RASTERS = Path(__file__).parents[2] / "shared" / "data" / "geo"


def sftp_server_program() -> str | None:
    """Path of OpenSSH's SFTP server; None: it is not installed."""
    return shutil.which("sftp-server", path="/usr/lib/openssh:/usr/libexec/openssh")


def _not_installed(name: str, package: str) -> str:
    return f"{name} is not installed (Debian: apt-get install {package})"


NEEDED: Mapping[str, tuple[Callable[[], object], str]] = {
    "postgis": (postgis_programs, _not_installed("PostGIS", "postgresql-15-postgis-3")),
    "clamd": (clamd_program, _not_installed("clamd", "clamav-daemon")),
    "gnupg": (lambda: shutil.which("gpg"), _not_installed("GnuPG", "gnupg")),
    "openssh": (
        sftp_server_program,
        _not_installed("OpenSSH's sftp-server", "openssh-sftp-server"),
    ),
    "glibc": (
        lambda: hasattr(ctypes.CDLL(None), "mallopt") or None,
        "the C library of this machine is not glibc",
    ),
    "real_rasters": (
        lambda: REAL_RASTERS.is_dir() or None,
        "there are no real rasters in ../shared/data/geo",
    ),
    "root": (lambda: os.geteuid() == 0 or None, "the tests do not run as root"),
}
"""What the tests of a marker need: what finds it (None: it is missing), and how that is said."""
LEFT_TO_CHAOS = "tests marked `chaos(alone=True)` are left to `make chaos`"
LONGEST_FIRST = ("crash", "workflows", "story", "e2e", "adapters", "test_recipes.py", "gateway")
"""Folders whose files take longest, and a file: begun last, one would be waited for alone."""


def pytest_configure() -> None:
    """Processes under test can be interrupted.

    A shell starts background jobs with SIGINT ignored, and every child would inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Temporal's servers, which are Go programs, use a sixth less of the processors on one thread.
    os.environ.setdefault("GOMAXPROCS", "1")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Until all tests are collected nothing is garbage.

    Looking through it takes a third of the time of collecting. From then on it is left alone.
    """
    if hasattr(session.config, "workerinput"):
        gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Random examples are chaos; processes that share the files get the longest first."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.chaos)
    if hasattr(config, "workerinput"):
        items.sort(key=_turn)
    for marker in _missing():
        _leave_out(config, items, lambda item, marker=marker: item.get_closest_marker(marker))
    if not CHAOS:
        _leave_out(config, items, _is_for_chaos_alone)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "SharedFixtures | None":
    """Files of one fixture for the whole session are given to one process."""
    if config.getoption("dist") != "loadfile":
        return None
    from tests.support.distribution import SharedFixtures

    return SharedFixtures(config, log)


def pytest_collection_finish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput"):
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    # Tests of these rules run sessions of their own within this one.
    if session.config.rootpath == Path(__file__).parents[1]:
        DATABASES.close()


@pytest.fixture(autouse=True, scope="module")
def databases_of_the_module() -> Generator[None]:
    """What its fixtures take is free for others when it is over."""
    with DATABASES.given_back():
        yield


@pytest.fixture(autouse=True)
def databases_of_the_test(databases_of_the_module: None) -> Generator[None]:
    """What it takes is free for others when it is over."""
    with DATABASES.given_back():
        yield


@pytest.fixture
def empty_url() -> Generator[str]:
    """URL of a database without any table."""
    with DATABASES.empty() as url:
        yield url


def _missing() -> list[str]:
    return [marker for marker, (found, _) in NEEDED.items() if found() is None]


def _is_for_chaos_alone(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("chaos")
    return marker is not None and marker.kwargs.get("alone", False)


def _leave_out(
    config: pytest.Config, items: list[pytest.Item], chosen: Callable[[pytest.Item], object]
) -> None:
    """Skipped they would fail in CI, where the machine cannot always be given what they need."""
    left_out = [item for item in items if chosen(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once what this machine cannot test, and what this run does not."""
    for marker in _missing():
        _, missing = NEEDED[marker]
        terminalreporter.write_line(f"{missing}: tests with the marker `{marker}` are left out")
    if not CHAOS:
        terminalreporter.write_line(LEFT_TO_CHAOS)


@pytest.fixture(scope="session")
def postgis() -> "Generator[PostgisServer]":
    """A server with PostGIS; only for tests with the marker `postgis`."""
    from tests.support.jobs.postgis import postgis_server

    with postgis_server() as server:
        yield server


@pytest.fixture
def postgis_url(postgis: "PostgisServer") -> str:
    """URL of an empty database with docflow's schema, PostGIS and `geo`."""
    asyncio.run(postgis.fresh.prepare())
    return postgis.fresh.url


def _turn(item: pytest.Item) -> int:
    turns = (LONGEST_FIRST.index(part) for part in item.path.parts if part in LONGEST_FIRST)
    return next(turns, len(LONGEST_FIRST))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fill_hole(report)
    # What was logged and printed goes to another process, as UTF-8: a test of halves of surrogate
    # pairs would end the one that runs it.
    report.sections = [
        (name, text.encode(errors="replace").decode()) for name, text in report.sections
    ]
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


@pytest.fixture
def bare_postgis_url(postgis: "PostgisServer") -> Generator[str]:
    """URL of a database with nothing in it, on a server that has PostGIS."""
    with postgis.bare_database() as url:
        yield url
