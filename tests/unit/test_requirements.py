"""What the product imports is installed with it, and not only for its tests."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from os import environ
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("docflow", "workflows", "activities", "adapters", "workers")
OWN = {*PACKAGES, "stack", "tests", "benchmarks"}
EXTRAS = {"azure-functions"}
"""Installed by those who need them: see the optional dependencies of the project."""
WITH_EXTRAS = ("activities/batches", "activities/jobs", "adapters/files")
"""What the image of the gateway does not use, or not all of it."""


def locked(name: str) -> frozenset[str]:
    """What a lock file installs."""
    return frozenset(re.findall(r"^([a-z0-9-]+)==", (ROOT / name).read_text(), re.MULTILINE))


BASE = locked("requirements.lock") | EXTRAS
LOCKED = locked("requirements-workers.lock") | EXTRAS


def imported(source: str) -> Iterator[str]:
    """Names of the packages that a module imports, wherever it does, except for its types."""
    nodes: list[ast.AST] = [ast.parse(source)]
    for node in nodes:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            nodes += node.orelse
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").partition(".")[0]


def missing(names: set[str], installed: frozenset[str] = LOCKED) -> dict[str, list[str]]:
    """Packages that no locked distribution brings, and those that do."""
    brought_by = packages_distributions()
    found = {
        name: [re.sub(r"[-_.]+", "-", each).lower() for each in brought_by.get(name, ())]
        for name in names - OWN - set(sys.stdlib_module_names)
    }
    return {name: each for name, each in found.items() if not installed & set(each)}


_IMPORT_ALL = """
import sys, importlib, pkgutil
from workers import catalogue
pipelines = catalogue.PIPELINES
sys.modules.update(dict.fromkeys(module for each in pipelines for module in each.libraries))
import activities.shared, docflow, workers
rooms = [docflow, workers, activities.shared]
rooms += [importlib.import_module(it.activities_package) for it in pipelines if not it.libraries]
found = [
    each.name
    for room in rooms
    for each in pkgutil.walk_packages(room.__path__, room.__name__ + ".")
    if not each.name.endswith("__main__")
]
for name in found:
    importlib.import_module(name)
print(len(found))
"""


def test_images_and_the_package_hold_every_room() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert set(wheel["targets"]["wheel"]["packages"]) == set(PACKAGES)
    for name in ("Dockerfile", "lambda/Dockerfile"):
        copied = set(
            re.findall(r"^COPY (?!--)(.+) \S+$", (ROOT / "deploy" / name).read_text(), re.M)
        )
        paths = {path for line in copied for path in line.split()}
        ignored = (ROOT / "deploy" / f"{name}.dockerignore").read_text().splitlines()
        assert set(PACKAGES) <= paths == {line[1:] for line in ignored if line.startswith("!")}
        assert all((ROOT / path).exists() for path in paths)


def test_what_the_product_imports_is_locked_with_it() -> None:
    names: dict[bool, set[str]] = {True: set(), False: set()}
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        is_base = not path.relative_to(ROOT).as_posix().startswith(WITH_EXTRAS)
        names[is_base] |= set(imported(path.read_text()))
    assert {"temporalio", "babel", "sqlalchemy"} <= names[True]
    assert missing(names[True], BASE) == {}
    assert missing(names[False]) == {}


def test_the_gateway_and_workers_without_extras_import_nothing_of_an_extra() -> None:
    """In a process of its own, where the modules of extras cannot be found."""
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT_ALL],
        cwd=ROOT,
        env={**environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 300


@pytest.mark.parametrize("source", ["import hypothesis", "def f():\n    from pytest import mark"])
def test_a_package_of_the_tests_alone_is_noticed(source: str) -> None:
    assert missing(set(imported(source))) != {}


def test_a_package_that_is_imported_for_types_alone_is_none() -> None:
    source = "if TYPE_CHECKING:\n    import hypothesis\nelse:\n    import sqlalchemy"
    assert set(imported(source)) == {"sqlalchemy"}
