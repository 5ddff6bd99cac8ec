"""What a module defines is used by the product, and not by its own test alone.

A private name is read in its own file; a public one somewhere in the product or the benchmarks,
beyond the lists that packages export. Decorated functions and classes are used by what registers
them; methods, fields and values of enums are not looked at.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("adapters", "activities", "workflows", "workers")
USERS = (*PRODUCT, "docflow", "stack", "benchmarks", "deploy")
FOR_TESTS = "adapters/memory/"
"""Fakes that tests take in the place of an adapter."""

_WORD = re.compile(r"[A-Za-z_]\w*")


def definitions(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of what a module defines and nothing registers."""
    for node in module.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names = [] if node.decorator_list else [node.name]
            case ast.Assign():
                names = [each.id for each in node.targets if isinstance(each, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                names = []
        yield from ((node.lineno, name) for name in names if not name.startswith("__"))


def read_in(module: ast.Module, *, exports: bool) -> Set[str]:
    """Names that a module reads, imports or names in a text; a package's exports do not count."""
    found: set[str] = set()
    for node in _walk(module):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                found.add(name)
            case ast.ImportFrom() if not exports:
                found.update(each.name for each in node.names)
            case ast.Constant(value=str(text)):
                found.update(_WORD.findall(text))
            case _:
                pass
    return found


def _walk(module: ast.Module) -> Iterator[ast.AST]:
    for node in module.body:
        if not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"):
            yield from ast.walk(node)


def unused(modules: Mapping[str, ast.Module], texts: str = "") -> list[str]:
    """File, line and name of what nothing uses.

    Args:
        modules: By the path of their file.
        texts: Templates, which use names of modules as well.
    """
    reads = {
        path: read_in(module, exports=path.endswith("__init__.py"))
        for path, module in modules.items()
    }
    everywhere = set(_WORD.findall(texts)).union(*reads.values())
    return [
        f"{path}:{line} {name}"
        for path, module in modules.items()
        if path.startswith(PRODUCT) and not path.startswith(FOR_TESTS)
        for line, name in definitions(module)
        if name not in (reads[path] if name.startswith("_") else everywhere)
    ]


def test_nothing_is_defined_for_nothing() -> None:
    files = [path for folder in USERS for path in sorted((ROOT / folder).rglob("*.py"))]
    modules = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in files}
    templates = (ROOT / "workers").rglob("*.html")
    found = unused(modules, "\n".join(path.read_text() for path in templates))
    assert [each for each in found if "/migrations/" not in each] == []


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"workflows/a.py": "_ONE = 1"}, ["workflows/a.py:1 _ONE"]),
        (
            {
                "workflows/a.py": "_ONE = 1\nTWO = _ONE",
                "workflows/b.py": "from workflows.a import TWO",
            },
            [],
        ),
        (
            {"workflows/a.py": "_ONE = 1", "workflows/b.py": "_ONE = 2\nTWO = _ONE"},
            ["workflows/a.py:1 _ONE", "workflows/b.py:2 TWO"],
        ),
        ({"workflows/a.py": "def one() -> None: ..."}, ["workflows/a.py:1 one"]),
        ({"workflows/a.py": "@register\ndef one() -> None: ..."}, []),
        (
            {
                "workflows/a.py": "ONE: int = 1",
                "workers/b.py": "import workflows.a\nworkflows.a.ONE",
            },
            [],
        ),
        ({"workflows/a.py": "ONE = 1", "workers/b.py": 'load("workflows.a:ONE")'}, []),
        (
            {
                "workflows/a.py": "ONE = 1",
                "workflows/__init__.py": 'from workflows.a import ONE\n__all__ = ["ONE"]',
            },
            ["workflows/a.py:1 ONE"],
        ),
        ({"stack/a.py": "ONE = 1", "adapters/memory/a.py": "TWO = 2"}, []),
    ],
)
def test_what_nothing_uses_is_found(files: Mapping[str, str], found: list[str]) -> None:
    assert unused({path: ast.parse(text) for path, text in files.items()}) == found


def test_templates_use_names_as_well() -> None:
    module = ast.parse("ONE = 1")
    assert unused({"workers/labels.py": module}, "{{ words.ONE }}") == []
