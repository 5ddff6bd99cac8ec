"""A pipeline's name is written in its own packages and its register, and nowhere else.

Whatever has to know all pipelines loops over the catalogue.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from workers import catalogue

ROOT = Path(__file__).parents[2]
PACKAGES = ("contracts", "domain", "adapters", "activities", "workflows", "workers", "stack")
NAMES = [pipeline.name for pipeline in catalogue.PIPELINES]

EXEMPT: Mapping[str, str] = {
    "workers/gateway/spreadsheets/api.py": "`imports` is a tag of the published HTTP API",
    "workers/settings/common.py": "`imports` is the default of AZURE_STORAGE_CONTAINER_NAME",
    "workers/bridges/function_app.py": "`imports` is the published name of an Azure function",
    "stack/embedded.py": "`imports` is the container and the worker of the smallest stack",
    "adapters/database/models/__init__.py": "names of modules in its `__all__`",
    "adapters/database/migrations/versions/0006_batches.py": "the name of a table in a release",
}
"""File to the reason for which a pipeline's name may stand there."""


def is_own(path: Path, name: str) -> bool:
    """Whether a file is a pipeline's own: a part of its path is the pipeline's name."""
    return name in (*path.parts[:-1], path.stem)


def names_in(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of every string literal that is the name of a pipeline."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in NAMES:
            yield node.lineno, str(node.value)


def foreign(path: Path, source: str) -> list[str]:
    """Names of pipelines in a file that is not theirs."""
    if path.as_posix() in EXEMPT:
        return []
    return [
        f"{path}:{line} names {name}: loop over the catalogue"
        for line, name in names_in(source)
        if not is_own(path, name)
    ]


def _files() -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT)


def test_a_pipeline_is_named_in_its_own_packages_alone() -> None:
    assert [said for path in _files() for said in foreign(path, (ROOT / path).read_text())] == []


def test_no_exemption_is_kept_for_nothing() -> None:
    for name in EXEMPT:
        path = ROOT / name
        assert list(names_in(path.read_text())), f"{name} names none"


@pytest.mark.parametrize(
    ("path", "source", "lines"),
    [
        ("workers/process.py", 'if "imports" in pipelines:\n    pass', [1]),
        ("workers/cli/status.py", 'OTHERS = {"spreadsheets": 1, "batches": 2}', [1, 1]),
        ("workers/pipelines/batches.py", 'NAME = "batches"', []),
        ("workers/pipelines/batches.py", 'NAME = "imports"', [1]),
        ("workflows/batches/sweeper.py", 'start("batches")', []),
        ("workers/process.py", '"""Runs imports."""\nname = "import"', []),
    ],
)
def test_a_name_that_stands_elsewhere_is_found(path: str, source: str, lines: list[int]) -> None:
    found = [int(said.split(":")[1].split()[0]) for said in foreign(Path(path), source)]
    assert found == lines
