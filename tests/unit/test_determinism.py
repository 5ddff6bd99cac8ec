"""What workflows run by gives the same answer in every process, at every time, for every run.

It is what replaces the workflow sandbox in production. Every rule refuses a planted example.
"""

import ast
import dataclasses
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from enum import Enum
from functools import cache
from itertools import count
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import pydantic
import pytest

from tests.support.determinism import declared, findings, findings_in
from tests.support.module_state import PACKAGES, modules_of, mutable_state

ROOT = Path(__file__).parents[2]
BANNED = """
import time
from time import monotonic
import random
from random import choice
import secrets
import uuid
from uuid import uuid4
import os
from os import environ, getenv, path
import sys
import platform
import locale
import threading
import queue
from concurrent.futures import ThreadPoolExecutor
import multiprocessing
import subprocess
import signal
import socket
import ssl
import http.client
import urllib.request
from urllib import request
import httpx
import aiohttp
from pathlib import Path
import tempfile
import shutil
import glob
import sqlite3
import io; io.open("planted")
import asyncio; asyncio.wait
asyncio.as_completed
asyncio.to_thread
asyncio.run
asyncio.get_running_loop().run_in_executor
asyncio.create_subprocess_exec
asyncio.open_connection
from asyncio import wait
import datetime; datetime.datetime.now()
datetime.datetime.utcnow()
datetime.date.today()
datetime.datetime.fromtimestamp(0)
from pydantic import BaseModel, Field; import uuid as ids
class Planted(BaseModel): id: str = Field(default_factory=ids.uuid4)
class At(BaseModel): at: object = Field(default_factory=datetime.datetime.now)
class By(BaseModel): by: object = Field(default_factory=lambda: datetime.datetime.now())
def planted(): import json
def planted(): from workflows.shared import errors
def planted(): global Planted; Planted = None
"""
"""Each line is refused by ruff; those that only import for a later line are joined with it."""
PER_CALL = """
open("planted")
hash("planted")
id(object())
input()
eval("1")
exec("1")
__import__("json")
def planted(): importlib.import_module("json")
"""
IN_ORDER_OF_HASHES = """
for each in {1, 2}: pass
for each in set(): pass
for each in frozenset([1]) | {2}: pass
for each in {}.keys() - [1]: pass
for each in sorted(set()) and set(): pass
[each for each in {each for each in ""}]
{each: 1 for each in set("ab")}
(each for each in {1, 2})
list(set())
tuple({1})
[*{1}]
print(*{1})
"".join({"a"})
dict.fromkeys({"a"})
next(iter({1}))
list(map(str, {1}))
list(enumerate({1}))
max({1}, key=str)
{1, 2}.pop()
f"{ {1, 2} }"
str({1, 2})
one, other = {1, 2}
def f(found: set[int]): return list(found)
def f(found: "frozenset[int] | None"): yield from found
def f(found: dict[int, set[int]]): return list(found[0])
def f(found: dict[int, set[int]]): return list(found.get(0))
def f(): found = {1}; return [*found]
def f(): found: set[int] = make(); return [*found]
def f(): return list(found) if (found := {1}) else []
def f(it: Any): return list(it.codes)
def f(it: Any): return list(it.waiting)
def f(it: Any): return list(it.known())
"""
IN_ANOTHER_ORDER = """
for each in sorted({1, 2}): pass
for each in dict.fromkeys([1, 2]): pass
{each for each in {1, 2}}
set(map(str, {1, 2}))
sorted(each for each in {1, 2})
any(each for each in {1, 2})
sorted(map(str, {1, 2}))
{*{1, 2}}
len({1, 2})
max({1, 2})
1 in {1, 2}
[only] = {1}
found = {1}
def f(found: list[int]): return list(found)
def f(found: dict[int, set[int]]): return list(found)
"""
DECLARES = """
class Codes:
    codes: frozenset[str]
    def __init__(self): self.waiting: set[int] = set()
    def known(self) -> set[str]: ...
"""


def _ruff(name: str, text: str) -> set[int]:
    """Lines that ruff refuses in a file of this name, for what makes them differ."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "ruff", "check", "--output-format", "json"),
            *("--stdin-filename", str(ROOT / name), "-"),
        ],
        input=text,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    rules = ("TID251", "PLC0415", "PLW0603")
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    return {each["location"]["row"] for each in found if each["code"] in rules}


@pytest.mark.parametrize("package", PACKAGES)
def test_ruff_refuses_what_differs_between_processes(package: str) -> None:
    lines = BANNED.strip().splitlines()
    refused = _ruff(f"{package}/imports/planted.py", "\n".join(lines))
    assert [line for at, line in enumerate(lines, 1) if at not in refused] == []


def test_ruff_refuses_it_nowhere_else() -> None:
    for name in ("activities/planted.py", "workers/planted.py", "tests/unit/planted.py"):
        assert _ruff(name, BANNED) == set(), name


def _found(text: str) -> Counter[int]:
    tree = ast.parse(text)
    return Counter(line for line, _ in findings(tree, declared([tree])))


@pytest.mark.parametrize("planted", (PER_CALL + IN_ORDER_OF_HASHES).split("\n"))
def test_planted_code_is_found(planted: str) -> None:
    assert len(_found(f"{planted}\n{DECLARES}")) == bool(planted)


@pytest.mark.parametrize("innocent", IN_ANOTHER_ORDER.strip().splitlines())
def test_what_has_an_order_of_its_own_is_not_found(innocent: str) -> None:
    assert not _found(innocent)


def test_no_result_depends_on_hashes_or_files() -> None:
    assert [*findings_in(ROOT / package for package in PACKAGES)] == []


@dataclasses.dataclass
class _Changing:
    seen: int = 0


@dataclasses.dataclass(frozen=True)
class _Frozen:
    seen: Any


class _Model(pydantic.BaseModel):
    seen: int = 0


class _Kind(Enum):
    ONE = "one"


@cache
def _pure(number: int) -> int:
    return number


def _remembering(seen: list[int] = []) -> list[int]:  # noqa: B006
    return seen


def _planted(**values: Any) -> list[str]:
    module = ModuleType("planted")
    vars(module).update(values)
    return [*mutable_state(module)]


@pytest.mark.parametrize(
    "state",
    [
        *([], {}, set(), bytearray(), defaultdict(int), Counter(), count(), iter([])),
        *(_Changing(), _Model(), object(), (1, [])),
        *(_Frozen([]), MappingProxyType({"one": []}), (each for each in "")),
    ],
    ids=lambda state: type(state).__name__,
)
def test_a_planted_global_that_can_change_is_found(state: Any) -> None:
    [name] = _planted(STATE=state)
    assert name.startswith("planted.STATE")


def test_state_of_a_class_and_of_a_default_is_found() -> None:
    planted = type("Planted", (), {"seen": {}, "__module__": "planted"})
    assert _planted(Planted=planted) == ["planted.Planted.seen"]
    _remembering.__module__ = "planted"
    assert _planted(remembering=_remembering) == ["planted.remembering()"]


def test_what_cannot_change_is_not_found() -> None:
    values = (1, "one", None, _Kind.ONE, frozenset([1]), (1, ("a", 1.5)), _pure, re.compile("a"))
    nested = MappingProxyType({"one": _Frozen((1, MappingProxyType({})))})
    assert _planted(VALUES=values, NESTED=nested, Kind=_Kind, json=json) == []


def test_no_run_can_change_what_another_one_sees() -> None:
    assert [name for module in modules_of(*PACKAGES) for name in mutable_state(module)] == []


def _contracts() -> Iterator[dict[str, Any]]:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    for contract in linter["contracts"]:
        if contract["type"] == "forbidden" and {"time", "threading"} <= {
            *contract["forbidden_modules"]
        }:
            yield contract


def test_import_contracts_refuse_planted_imports(tmp_path: Path) -> None:
    text = f"[tool.importlinter]\nroot_packages = {list(PACKAGES)}\n"
    text += "include_external_packages = true\n"
    planted: list[str] = []
    for contract in _contracts():
        external = [each for each in contract["forbidden_modules"] if each not in PACKAGES]
        for package in contract["source_modules"]:
            (tmp_path / package).mkdir()
            (tmp_path / package / "__init__.py").write_text("")
            imports = "".join(f"import {each}\n" for each in external)
            (tmp_path / package / "planted.py").write_text(imports)
            planted += [f"{package}.planted -> {each}" for each in external]
        text += "[[tool.importlinter.contracts]]\n" + "".join(
            f"{key} = {json.dumps(value)}\n" for key, value in contract.items()
        )
    (tmp_path / "pyproject.toml").write_text(text)
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and {each.split(".")[0] for each in planted} == {*PACKAGES}
    assert [each for each in planted if each not in done.stdout] == [], done.stdout
