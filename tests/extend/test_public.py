"""What packages may import is a list that people review, and enough for the sample package."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import docflow.extend
from activities.jobs.api import ENTRY_POINTS
from activities.transfers.api import GROUP as ACTIONS
from adapters.files.tables.custom import GROUP as READERS
from adapters.places.custom import GROUP as KINDS
from adapters.types.checks import GROUP as CHECKS
from adapters.types.files import GROUP as TYPES
from tests.extend.conftest import PACKAGE
from tests.extend.public import lines
from tests.support.processes import ROOT

OURS = {"activities", "adapters", "docflow", "emulators", "stack", "tests", "workers", "workflows"}
MODULES = sorted(PACKAGE.rglob("*.py"))


def test_the_public_names_are_those_of_the_list() -> None:
    kept = (Path(__file__).parent / "public.txt").read_text()
    assert "\n".join(lines()) + "\n" == kept, "see tests/extend/public.py"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_the_sample_imports_docflow_extend_alone(module: Path) -> None:
    imported = {
        name
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [each.name for each in node.names]
        )
    }
    assert {name for name in imported if name.partition(".")[0] in OURS} <= {"docflow.extend"}


def test_the_page_shows_the_files_of_the_sample() -> None:
    page = (ROOT / "docs" / "extending.md").read_text()
    shown = dict(re.findall(r"^```\w+ file=(\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    files = {
        each.relative_to(PACKAGE).as_posix(): each.read_text()
        for each in PACKAGE.rglob("*")
        if each.suffix in (".py", ".toml", ".yaml") and each.stat().st_size
    }
    assert shown == files


def test_the_page_names_every_group() -> None:
    page = (ROOT / "docs" / "extending.md").read_text()
    groups = {ENTRY_POINTS, ACTIONS, KINDS, TYPES, CHECKS, READERS}
    assert set(re.findall(r"^\| `(docflow\.\w+)` \|", page, re.MULTILINE)) == groups
    assert groups == set(re.findall(r"`(docflow\.\w+)` \|", str(docflow.extend.__doc__)))


def test_public_names_are_documented() -> None:
    public = {name: getattr(docflow.extend, name) for name in docflow.extend.__all__}
    # Of an alias there is nothing to ask.
    del public["JsonObject"]
    assert [name for name, each in public.items() if not each.__doc__] == []


def test_the_import_loads_neither_temporal_nor_gdal() -> None:
    heavy = ("temporalio", "rasterio", "osgeo", "pyogrio", "fastapi", "asyncssh")
    code = f"import docflow.extend, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
