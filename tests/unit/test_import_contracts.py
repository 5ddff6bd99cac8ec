"""The hand-written lists of import-linter hold every pipeline of the catalogue."""

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import grimp

from workers import catalogue

ROOT = Path(__file__).parents[2]
LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
NAMES = {pipeline.name for pipeline in catalogue.PIPELINES}


def pipelines_by_package(modules: Iterable[str]) -> Mapping[str, set[str]]:
    """Package to the pipelines that have a module or package of their name in it."""
    found: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        package, _, name = module.rpartition(".")
        if name in NAMES:
            found[package].add(name)
    return found


def differences(there: Mapping[str, set[str]], listed: Mapping[str, set[str]]) -> list[str]:
    """Packages whose list is missing or differs from the pipelines in them."""
    return [
        f"{package} holds {sorted(names)}, its list {sorted(listed.get(package, ()))}"
        for package, names in there.items()
        if (len(names) > 1 or package in listed) and listed.get(package) != names
    ]


def _modules() -> Iterator[str]:
    for package in LINTER["root_packages"]:
        for path in sorted((ROOT / package).rglob("*.py")):
            file = path.relative_to(ROOT).with_suffix("")
            module = file.parent if file.name == "__init__" else file
            yield ".".join(module.parts)


def _listed() -> Iterator[str]:
    for contract in LINTER["contracts"]:
        if contract["type"] == "independence":
            yield from contract["modules"]


def test_independence_is_asked_of_every_pipeline_alone() -> None:
    there = pipelines_by_package(_modules())
    assert {"workflows", "activities", "workers"} <= there.keys()
    assert differences(there, pipelines_by_package(_listed())) == []


def test_a_list_that_is_missing_or_too_short_is_found() -> None:
    one, other, *_ = sorted(NAMES)
    there = {"activities": {one, other}, "workers.shared.settings": {one}}
    assert differences(there, {"activities": {one, other}}) == []
    assert differences(there, {}) == [f"activities holds {[one, other]}, its list []"]
    assert differences(there, {"activities": {one}, "workers.shared.settings": {one}}) == [
        f"activities holds {[one, other]}, its list {[one]}"
    ]


def test_rules_and_workflows_use_no_other_libraries() -> None:
    """Those that are forbidden are listed by name; whatever else there is, is left out as well."""
    assert set(_libraries("workflows")) == {"pydantic", "pydantic_core", "temporalio"}


def test_rules_and_contracts_can_be_imported_without_temporal() -> None:
    """A module that uses the engine is a workflow's own: no rule and no contract imports it."""
    graph = grimp.build_graph("workflows", include_external_packages=True, cache_dir=None)
    engine = graph.find_modules_that_directly_import("temporalio")
    pure = {each for each in graph.modules if each.startswith("workflows.")} - engine
    assert {each for each in pure if graph.find_upstream_modules(each) & engine} == set()
    assert {f"workflows.{name}.runs" for name in NAMES} <= pure
    assert (ROOT / "workflows" / "__init__.py").read_text() == ""


def _libraries(package: str) -> Iterator[str]:
    """What a package imports that is neither of this house nor of Python."""
    known = {*LINTER["root_packages"], *sys.stdlib_module_names}
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Import(names=names):
                    found = {each.name.partition(".")[0] for each in names}
                case ast.ImportFrom(module=str(module)):
                    found = {module.partition(".")[0]}
                case _:
                    found = set[str]()
            yield from found - known


def test_gdal_is_kept_out_of_everything_that_workers_import() -> None:
    [contract] = [
        each for each in LINTER["contracts"] if "rasterio" in each.get("forbidden_modules", ())
    ]
    assert {"rasterio", "pyogrio", "osgeo"} <= set(contract["forbidden_modules"])
    assert set(LINTER["root_packages"]) - set(contract["source_modules"]) == {"adapters"}
    assert "ignore_imports" not in contract
