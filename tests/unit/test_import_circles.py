"""No modules and no packages import each other in a circle.

The graph holds imports inside functions and those for type checkers as well: a circle that shows
only there is one all the same.
"""

import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]

ROOMS = "workers"
"""What pipelines share loops over the catalogue, which names their registers, which share it: of
these packages, the modules alone must not form a circle."""

Arrows = Mapping[str, Set[str]]
"""Module or package to those that it imports."""


def circles(graph: grimp.ImportGraph) -> Iterator[str]:
    """A circle of modules, and one among the modules and packages of each package."""
    modules = {each: graph.find_modules_directly_imported_by(each) for each in graph.modules}
    packages = (arrows for package, arrows in _siblings(modules).items() if package != ROOMS)
    for arrows in (modules, *packages):
        try:
            TopologicalSorter(arrows).prepare()
        except CycleError as error:
            yield " <- ".join(error.args[1])


def _siblings(modules: Arrows) -> Mapping[str, Arrows]:
    """Package to the arrows between what stands directly in it."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for importer, imported in modules.items():
        for each in imported:
            package, one, other = _parting(importer, each)
            if one != other:
                found[package][one].add(other)
    return found


def _parting(importer: str, imported: str) -> tuple[str, str, str]:
    """The package that holds both, and what of it holds each; the same: one holds the other."""
    paths = importer.split("."), imported.split(".")
    depth = 0
    while all(len(path) > depth for path in paths) and paths[0][depth] == paths[1][depth]:
        depth += 1
    one, other = (".".join(path[: depth + 1]) for path in paths)
    is_inside = depth >= min(map(len, paths))
    return ".".join(paths[0][:depth]), one, one if is_inside else other


def test_nothing_imports_itself_by_way_of_others() -> None:
    graph = grimp.build_graph(*LINTER["root_packages"], cache_dir=None)
    assert len(graph.modules) > 500
    assert list(circles(graph)) == []


@pytest.mark.parametrize(
    ("files", "circle"),
    [
        ({"a": "import house.b", "b": "import house.c", "c": ""}, None),
        ({"a": "import house.b", "b": "def late():\n    import house.a"}, {"a", "b"}),
        (
            {
                "a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import house.b",
                "b": "import house.a",
            },
            {"a", "b"},
        ),
        (
            {
                "a/__init__": "",
                "b/__init__": "",
                "a/one": "import house.b.one",
                "a/two": "",
                "b/one": "",
                "b/two": "def late():\n    import house.a.two",
            },
            {"a", "b"},
        ),
        ({"a/__init__": "from house.a.one import X", "a/one": "import house.a"}, {"a", "a.one"}),
        ({"a/__init__": "from house.a.one import X", "a/one": "X = 1"}, None),
    ],
)
def test_a_circle_is_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: Mapping[str, str],
    circle: Set[str] | None,
) -> None:
    for name, text in {"__init__": "", **files}.items():
        path = tmp_path / "house" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    found = list(circles(grimp.build_graph("house", cache_dir=None)))
    named = {each.removeprefix("house.") for said in found for each in said.split(" <- ")}
    assert named == (circle or set())
