"""The `docflow` program as a shell sees it."""

import json
import socket
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.cli import COMMANDS, run_docflow, run_docflow_in_thread
from workers.shared.cli.app import app
from workers.shared.cli.context import CliContext
from workers.shared.text import one_line, visible

DOCFLOW = (sys.executable, "-m", "workers.shared.cli")
ROOT = Path(__file__).parents[3]
UPLOAD = "0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1"


def docflow(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DOCFLOW, *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_command_is_there() -> None:
    assert {" ".join(path) for path in COMMANDS} >= {
        *("import submit", "status", "list", "show", "report"),
        *("retry", "skip", "fail", "cancel"),
        *("message list", "message retry", "login", "context"),
        *("db upgrade", "db current", "dev", "demo", "worker", "bridge", "gateway"),
    }


@pytest.mark.parametrize(
    "arguments", ["run list --help", "worker --help", "db --help", "run --help"]
)
def test_help_loads_neither_pydantic_nor_the_registers(arguments: str) -> None:
    code = """
import os, sys
from workers.shared.cli import app as tree
try:
    tree.app(sys.argv[1:], prog_name="docflow")
except SystemExit:
    print(*({"pydantic", "asyncio", "workers.catalogue"} & set(sys.modules)), file=sys.stderr)
"""
    command = [sys.executable, "-c", code, *arguments.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout[:6], done.stderr.strip()) == ("Usage:", "")


async def test_the_doctor_reports_settings_and_the_gateway_of_commands() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings = {"DOCFLOW_ADDRESS": f"http://127.0.0.1:{port}", "DOCFLOW_TOKEN": "x"}
    done = await run_docflow_in_thread("doctor", "--json", context=CliContext(settings))
    found = {each["name"]: each for each in json.loads(done.stdout)}
    assert done.exit_code == 1
    assert "missing setting: DATABASE_URL" in found["settings"]["details"]
    assert found["gateway"]["state"] == "unavailable"
    assert "start `docflow gateway`" in found["gateway"]["details"]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_explains_itself_with_an_example(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*path, "--help"], prog_name="docflow")
    assert shown.exit_code == 0
    assert f"Usage: docflow {' '.join(path)}" in shown.output
    usage, _, examples = shown.output.partition("Example")
    # A shorthand shows both forms.
    assert f"docflow {' '.join(path[path[0] == 'run' :])}" in examples.split("Options:")[0] or (
        f"docflow {' '.join(path)}" in examples
    )
    assert "\b" not in usage


def test_the_version_is_that_of_the_distribution() -> None:
    done = docflow("--version")
    assert (done.returncode, done.stdout) == (0, f"docflow {version('docflow')}\n")


def test_an_interrupt_while_the_program_loads_ends_it_quietly() -> None:
    code = """
import signal, sys

class Interrupter:
    def find_spec(self, name, path=None, target=None):
        if name == "workers.shared.cli.app":
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:  # As Python does in callbacks of its import system.
                pass

sys.meta_path.insert(0, Interrupter())
from workers.shared.cli import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "says"),
    [
        (["list"], {}, 2, "no gateway is known: `docflow login ADDRESS`"),
        (["db", "current"], {}, 1, "missing setting: DATABASE_URL"),
        (
            ["db", "current"],
            {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/docflow"},
            1,
            "the database is not available",
        ),
        (["bridge", "service-bus"], {}, 1, "AZURE_SERVICE_BUS_CONNECTION_STRING"),
        (["worker", "all", "--with-bridge"], {}, 1, "AZURE_SERVICE_BUS_CONNECTION_STRING"),
        (["batch", "show", "7"], {}, 2, "'7' is no batch; write CASE/BATCH, for example 7/1"),
        (["batch", "show", "7/1", "--state", "failed"], {}, 2, "--state goes with documents"),
        (["batch", "finish", "7/1", "--end", "--documents", "2"], {}, 2, "do not go together"),
        (["job", "show", "x", "--state", "FAILED"], {}, 2, "--state goes with tasks"),
        (["job", "show", "x", "tasks", "--watch"], {}, 2, "--watch goes with the job as a whole"),
        (["upload", "show", UPLOAD, "--outcome", "ERROR"], {}, 2, "--outcome goes with rows"),
        (["partner", "key", "add", "acme", "--passphrase", "x"], {}, 2, "goes with --private"),
        (["partner", "key", "add", "acme", "--private", "env:X"], {}, 2, "needs --fingerprint"),
        (["watch", "show", "x", "--expected", "--unsent"], {}, 2, "--unsent goes with a watch"),
        (["route", "list", "--history", "--queue", "q"], {}, 2, "--history is of all queues"),
        (["transfer", "assign", "5eed5eed", "--reason", "x"], {}, 2, "--reason goes with a queue"),
        (["type", "show"], {}, 2, "name the type, or --schema"),
        (["import", "undo", "x"], {}, 2, "'x' is no import; write PROJECT/TASK"),
        (["setup", "jobs", "--schedules"], {}, 2, "--schedules are those of all pipelines"),
        (["context", "--remove"], {}, 2, "name the context to remove"),
    ],
)
def test_failures_are_one_line_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    environment: Mapping[str, str],
    code: int,
    says: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = run_docflow(*arguments, context=CliContext(environment))
    assert (done.exit_code, done.stdout) == (code, "")
    first, *further = done.stderr.splitlines()
    assert first.startswith("docflow: ") and says in first
    assert [line for line in further if not line.startswith("docflow: missing setting: ")] == []
    assert not further or "missing setting: " in first


def test_a_wrong_option_is_a_usage_error() -> None:
    done = docflow("list", "--limit", "many")
    assert done.returncode == 2
    assert "--limit" in done.stderr and "Traceback" not in done.stderr


def test_the_schema_is_upgraded_once(tmp_path: Path, empty_url: str) -> None:
    settings = {
        "DATABASE_URL": empty_url,
        "DOCFLOW_BLOB_FOLDER": str(tmp_path / "blobs"),
    }

    def shown(*arguments: str) -> str:
        done = CliRunner().invoke(app, arguments, env=settings)
        assert done.exit_code == 0, done.output
        return done.output

    behind = docflow("type", "list", **settings)
    assert behind.returncode == 1 and "docflow db upgrade" in behind.stderr
    first = shown("db", "upgrade")
    assert first.startswith("the schema is at ") and "was empty" in first
    assert "already" in shown("db", "upgrade")
    assert shown("db", "current").strip() in first
    assert "equipment" in shown("type", "list")


def test_text_from_outside_cannot_steer_a_terminal() -> None:
    assert visible("a\x1b[2J\x9b\u202eb\tc\nd\ud800") == "a\\x1b[2J\\x9b\\u202eb\tc\nd\\ud800"
    assert one_line(" a\r\n b\x00 ") == "a b\\x00"
