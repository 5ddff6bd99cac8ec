"""The hand-written lists of import-linter hold every pipeline of the catalogue."""

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

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


def test_gdal_is_kept_out_of_everything_that_workers_import() -> None:
    [contract] = [
        each for each in LINTER["contracts"] if "rasterio" in each.get("forbidden_modules", ())
    ]
    assert {"rasterio", "pyogrio", "osgeo"} <= set(contract["forbidden_modules"])
    assert set(LINTER["root_packages"]) - set(contract["source_modules"]) == {"adapters"}
    assert "ignore_imports" not in contract
