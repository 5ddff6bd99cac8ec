"""What the product imports is installed with it, and not only for its tests."""

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("docflow", "workflows", "activities", "adapters", "workers")
OWN = {*PACKAGES, "stack", "tests", "benchmarks"}
EXTRAS = {"azure-functions"}
"""Installed by those who need them: see the optional dependencies of the project."""
LOCKED = frozenset(
    re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
)


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


def missing(names: set[str]) -> dict[str, list[str]]:
    """Packages that no locked distribution brings, and those that do."""
    brought_by = packages_distributions()
    found = {
        name: [re.sub(r"[-_.]+", "-", each).lower() for each in brought_by.get(name, ())]
        for name in names - OWN - set(sys.stdlib_module_names)
    }
    return {name: each for name, each in found.items() if not (LOCKED | EXTRAS) & set(each)}


def test_what_the_product_imports_is_locked_with_it() -> None:
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    names = {name for path in files for name in imported(path.read_text())}
    assert {"temporalio", "babel", "sqlalchemy"} <= names
    assert missing(names) == {}


@pytest.mark.parametrize("source", ["import hypothesis", "def f():\n    from pytest import mark"])
def test_a_package_of_the_tests_alone_is_noticed(source: str) -> None:
    assert missing(set(imported(source))) != {}


def test_a_package_that_is_imported_for_types_alone_is_none() -> None:
    source = "if TYPE_CHECKING:\n    import hypothesis\nelse:\n    import sqlalchemy"
    assert set(imported(source)) == {"sqlalchemy"}
