"""The `docflow` program as a shell sees it."""

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import pytest
from azure.servicebus.aio import ServiceBusClient
from typer.testing import CliRunner

from tests.support.cli import COMMANDS, run_docflow
from workers.shared.cli.app import app
from workers.shared.cli.context import CliContext
from workers.shared.text import one_line, visible

DOCFLOW = (sys.executable, "-m", "workers.shared.cli")
ROOT = Path(__file__).parents[3]


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
        *("message list", "message retry", "dead-letter redrive", "login"),
        *("db upgrade", "db current", "stack service-bus"),
        *("worker imports", "worker all", "bridge service-bus"),
    }


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
        (
            ["stack", "service-bus", "--messages", "/missing/x"],
            {},
            1,
            "cannot use /missing/x: unable",
        ),
        (["stack", "service-bus", "--queue", "q:lock=x"], {}, 2, "--queue: 'lock=x' of queue 'q'"),
        (
            ["stack", "service-bus", "--queue", "q", "--queue", "q"],
            {},
            2,
            "--queue: q is named twice",
        ),
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


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = docflow("stack", "service-bus", "--port", str(port))
    assert done.returncode == 1
    assert done.stderr.startswith(f"docflow: cannot listen on port {port}: ")


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


async def test_the_emulator_runs_by_itself_until_it_is_stopped() -> None:
    process = await asyncio.create_subprocess_exec(
        *(*DOCFLOW, "stack", "service-bus", "--port", "0", "--queue", "a:lock=5", "--queue", "b"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            line = (await process.stdout.readline()).decode()
        name, _, value = line.strip().partition("=")
        assert name == "AZURE_SERVICE_BUS_CONNECTION_STRING"
        async with (
            ServiceBusClient.from_connection_string(value.strip("'")) as client,
            client.get_queue_receiver("b") as receiver,
        ):
            assert await receiver.peek_messages(1) == []
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            code = await process.wait()
    assert code == 0


def test_text_from_outside_cannot_steer_a_terminal() -> None:
    assert visible("a\x1b[2J\x9b\u202eb\tc\nd\ud800") == "a\\x1b[2J\\x9b\\u202eb\tc\nd\\ud800"
    assert one_line(" a\r\n b\x00 ") == "a b\\x00"
