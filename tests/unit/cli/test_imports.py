"""What commands import, and which settings they ask for: no more than they need."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fresh_database import fresh_url

ROOT = Path(__file__).parents[3]

CLOUDS = ("aioboto3", "azure", "botocore", "obstore")
ENGINE = ("temporalio",)
WEB = ("fastapi", "httpx", "jinja2", "starlette", "uvicorn")
FILES = ("adapters.files", "docx", "babel", "pypdfium2", "python_calamine", "rapidfuzz")
DATABASE = ("adapters.database", "sqlalchemy")
SCHEMA = ("alembic", "adapters.database.models.every")
NEVER = (*CLOUDS, *WEB, *FILES, *SCHEMA, "stack")
"""What no command needs that only reads."""


IMPORTED = "sys.modules"
BUILT = """(
    f"{module}.{name}"
    for module in list(sys.modules)
    if module.partition(".")[0] in ("adapters", "contracts", "domain", "workers")
    for name, value in vars(sys.modules[module]).items()
    if isinstance(value, TypeAdapter) and value.pydantic_complete
)"""
"""Validators that have a name and are built; one of them takes as long as fifty contracts."""


def imported(*arguments: str, fails: bool = False, **environment: str) -> set[str]:
    """The modules that a command has imported at its end."""
    ended, said, modules = at_the_end(IMPORTED, *arguments, **environment)
    assert (ended, said == "") == (("1", False) if fails else ("0", True)), said
    return modules


def at_the_end(what: str, *arguments: str, **environment: str) -> tuple[str, str, set[str]]:
    """Exit code of a command, what it says of errors, and names by an expression at its end."""
    code = f"""
import os, sys
from pydantic import TypeAdapter
from workers.shared.cli.app import app
try:
    app({list(arguments)!r})
except SystemExit as ended:
    print(ended.code, *{what}, flush=True)
# Threads of Temporal's SDK may abort an interpreter that ends in the usual way.
os._exit(0)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    ended, *names = done.stdout.splitlines()[-1].split()
    return ended, done.stderr, set(names)


def found(modules: set[str], unwanted: tuple[str, ...]) -> list[str]:
    return sorted(modules.intersection(unwanted))


def test_help_loads_nothing_that_works() -> None:
    modules = imported("--help")
    heavy = (*CLOUDS, *ENGINE, *WEB, *FILES, *DATABASE, *SCHEMA, "rich", "workers.catalogue")
    assert found(modules, heavy) == []


def test_a_name_is_completed_by_the_tree_alone() -> None:
    typed = {"_TYPER_COMPLETE_ARGS": "docflow sch", "_DOCFLOW_COMPLETE": "complete_zsh"}
    code = """
import sys
sys.argv = ["docflow"]
from workers.shared.cli.app import app
try:
    app(prog_name="docflow")
finally:
    loaded = sys.modules.keys() & {"workers.catalogue", "workers.shared.cli.schedules"}
    print(sorted(loaded), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=typed,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert '"schedule":"List, pause and trigger schedules."' in done.stdout
    assert done.stderr == "[]\n"


def test_one_command_does_not_load_the_others() -> None:
    modules = imported("db", "--help")
    assert (
        found(modules, ("workers.batches.commands", "workers.shared.cli.runs", "workers.catalogue"))
        == []
    )


@pytest.mark.parametrize(
    "command",
    [
        *("list", "retry batch/7/1", "schedule list", "upload list"),
        "import submit samples/equipment.csv --type equipment --project P1",
    ],
)
def test_a_command_that_asks_a_gateway_needs_nothing_else(command: str) -> None:
    gateway = {"DOCFLOW_ADDRESS": "http://127.0.0.1:1", "DOCFLOW_TOKEN": "x"}
    modules = imported(*command.split(), fails=True, **gateway)
    assert "httpx" in modules
    assert found(modules - {"httpx"}, (*NEVER, *ENGINE, *DATABASE)) == []


@pytest.mark.parametrize(("command", "code"), [("list", "1"), ("status", "1")])
def test_a_command_builds_no_validator_that_it_does_not_use(command: str, code: str) -> None:
    settings = {"DATABASE_URL": fresh_url(), "TEMPORAL_ADDRESS": "127.0.0.1:1"}
    settings |= {"DOCFLOW_ADDRESS": "http://127.0.0.1:1", "DOCFLOW_TOKEN": "x"}
    ended, _, built = at_the_end(BUILT, *command.split(), **settings)
    assert (ended, built) == (code, set())


def test_modules_are_loaded_without_a_collection_and_a_process_collects() -> None:
    code = """
import gc, json, os, sys
import workers.shared.cli.app as module
from workers.shared.cli import main
from workers.shared.cli.processes import start_logs

def app(prog_name):
    import workers.catalogue, adapters.database
    loaded = sum(each["collections"] for each in gc.get_stats())
    start_logs({})
    print(json.dumps([loaded - before, gc.get_threshold()[0]]))

module.app = app
gc.disable()
before = sum(each["collections"] for each in gc.get_stats())
gc.enable()
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={}, capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "[0, 50000]\n", done.stderr
