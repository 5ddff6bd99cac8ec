"""The hand-written lists of import-linter hold every pipeline of the catalogue."""

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

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
    assert {"contracts", "workers.services", "workers.pipelines", "adapters.ports"} <= there.keys()
    assert differences(there, pipelines_by_package(_listed())) == []


def test_a_list_that_is_missing_or_too_short_is_found() -> None:
    one, other, *_ = sorted(NAMES)
    there = {"contracts": {one, other}, "workers.settings": {one}}
    assert differences(there, {"contracts": {one, other}}) == []
    assert differences(there, {}) == [f"contracts holds {[one, other]}, its list []"]
    assert differences(there, {"contracts": {one}, "workers.settings": {one}}) == [
        f"contracts holds {[one, other]}, its list {[one]}"
    ]


def contract_with(key: str, module: str) -> Mapping[str, Any]:
    """The one contract that has a module in a list."""
    [found] = [each for each in LINTER["contracts"] if module in each.get(key, ())]
    return found


def test_every_adapter_is_wired_by_workers_alone() -> None:
    folder = ROOT / "adapters"
    there = {path.stem for path in folder.iterdir() if not path.name.startswith("__")}
    wired = contract_with("forbidden_modules", "adapters.azure")
    assert {f"adapters.{name}" for name in there - {"ports"}} == set(wired["forbidden_modules"])


def test_rules_and_workflows_use_no_other_libraries() -> None:
    """Those that are forbidden are listed by name; whatever else there is, is left out as well."""
    used = {package: set(_libraries(package)) for package in ("contracts", "domain", "workflows")}
    assert used == {
        "contracts": {"pydantic"},
        "domain": {
            *("pydantic", "rapidfuzz", "cloudevents", "yaml", "jsonschema", "referencing"),
            *("cql2", "numpy", "pyproj", "pystac", "shapely"),
        },
        "workflows": {"pydantic", "temporalio"},
    }


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
