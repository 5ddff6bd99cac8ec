"""`docflow worker` and `docflow bridge` hand their options on, and nothing else."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import pytest

from tests.sixth.register import PARCELS
from tests.support.cli import SETTINGS
from tests.support.cli_fakes import FakeInstallation
from workers import catalogue
from workers.shared.errors import SettingsError
from workers.shared.process import choose
from workers.shared.register import Bridge


@dataclass(frozen=True)
class Totals:
    received: int = 12
    settled: int = 10
    dead_lettered: int = 2
    abandoned: int = 0


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was started, with which options."""
    calls: list[Any] = []
    process = ModuleType("workers.shared.process")

    async def run_worker(
        names: list[str] | None, environment: Mapping[str, str], **options: Any
    ) -> None:
        calls.append((names, dict(environment), options))

    async def run_bridge(
        bridge: Bridge,
        environment: Mapping[str, str],
        *,
        drain: bool,
        health_port: int | None,
        metrics_port: int | None,
    ) -> Totals:
        if not environment:
            raise SettingsError("missing setting: AZURE_SERVICE_BUS_CONNECTION_STRING")
        calls.append((bridge.name, dict(environment), drain, health_port, metrics_port))
        return Totals()

    vars(process).update(choose=choose, run_worker=run_worker, run_bridge=run_bridge)
    monkeypatch.setitem(sys.modules, "workers.shared.process", process)
    return calls


def options(
    with_bridge: bool, health: int | None, metrics: int | None, lane: str | None = None
) -> dict[str, Any]:
    return {
        "with_bridge": with_bridge,
        "lane": lane,
        "health_port": health,
        "metrics_port": metrics,
    }


@pytest.mark.parametrize(
    ("arguments", "pipelines", "expected"),
    [
        (["imports"], ["imports"], options(False, None, None)),
        (["imports", "--with-bridge", "--health-port", "0"], ["imports"], options(True, 0, None)),
        (["spreadsheets", "--health-port", "0"], ["spreadsheets"], options(False, 0, None)),
        # The process finds out whose settings are present.
        (["all", "--metrics-port", "9090"], None, options(False, None, 9090)),
        (["batches", "--with-bridge"], ["batches"], options(True, None, None)),
        (["jobs", "--lane", "heavy"], ["jobs"], options(False, None, None, "heavy")),
        (["batches", "--lane", "loading"], ["batches"], options(False, None, None, "loading")),
    ],
)
def test_worker(
    arguments: list[str],
    pipelines: list[str] | None,
    expected: dict[str, Any],
    started: list[Any],
) -> None:
    assert FakeInstallation().docflow("worker", *arguments).exit_code == 0
    assert started == [(pipelines, SETTINGS, expected)]


@pytest.mark.parametrize("drain", [True, False])
def test_the_bridge_reports_what_it_did(drain: bool, started: list[Any]) -> None:
    ports = ["--metrics-port", "9090"] if drain else []
    done = FakeInstallation().docflow("bridge", "service-bus", *(["--drain"] * drain), *ports)
    assert started == [("service-bus", SETTINGS, drain, None, 9090 if drain else None)]
    assert done.stdout == "12 received: 10 settled, 2 dead-lettered, 0 abandoned\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["worker"], "name a pipeline:\n  imports "),
        (["worker", "x"], "there is no pipeline x:\n  imports "),
        (["worker", "spreadsheets", "--with-bridge"], "--with-bridge: spreadsheets has no bridge"),
        (["worker", "imports", "--lane", "heavy"], "--lane / --queue: imports has no lanes"),
        (["worker", "all", "--lane", "heavy"], "--lane / --queue: all has no lanes"),
        (["worker", "jobs", "--lane", "x"], "--lane / --queue: 'x' is none of "),
        (["worker", "jobs", "--lane", "heavy", "--with-bridge"], "a lane has no bridge"),
        (["bridge"], "name a bridge:\n  service-bus "),
        (["bridge", "jobs"], "there is no bridge jobs:\n  service-bus "),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(
    arguments: list[str], says: str, started: list[Any]
) -> None:
    done = FakeInstallation().docflow(*arguments)
    assert (done.exit_code, started) == (2, [])
    assert says in done.stderr


@pytest.mark.parametrize("name", ["parcels", "all"])
def test_a_worker_without_the_libraries_of_an_extra_says_what_to_install(
    name: str, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    parcels = replace(PARCELS, enabled_by=None, libraries=("asyncio", "no_such_library"))
    monkeypatch.setattr(catalogue, "PIPELINES", (parcels,))
    done = FakeInstallation().docflow("worker", name)
    assert (done.exit_code, started) == (2, [])
    assert "install 'docflow[parcels]', or take the image of workers" in done.stderr


def test_a_bridge_without_settings_does_not_start(started: list[Any]) -> None:
    done = FakeInstallation(environment={}).docflow("bridge", "service-bus")
    assert (done.exit_code, started) == (1, [])
    assert done.stderr == "docflow: missing setting: AZURE_SERVICE_BUS_CONNECTION_STRING\n"


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_an_invalid_port_is_refused(port: str, started: list[Any]) -> None:
    assert FakeInstallation().docflow("worker", "imports", "--health-port", port).exit_code == 2
    assert started == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("worker", "imports"),
        ("worker", "transfers"),
        ("worker", "transfers", "--queue", "jobs"),
        ("bridge", "service-bus"),
        ("gateway",),
    ],
)
def test_whatever_is_wrong_is_named_at_once(arguments: tuple[str, ...]) -> None:
    wrong = {
        "DATABASE_URL": "mysql://server/name",
        "DOCFLOW_LOG_FORMAT": "xml",
        "TEMPORAL_TLS": "maybe",
    }
    if "transfers" in arguments:
        wrong["DOCFLOW_TRANSFERS_QUEUES"] = "/nowhere"
    done = FakeInstallation(environment=wrong).docflow(*arguments)
    assert done.exit_code != 0
    for name in wrong:
        assert f"docflow: {name}" in done.output, done.output
