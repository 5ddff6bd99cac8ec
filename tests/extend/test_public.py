"""What packages may import is a list that people review, and enough for the sample package."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import docflow.extend
from tests.extend.conftest import PACKAGE
from tests.extend.public import lines

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
