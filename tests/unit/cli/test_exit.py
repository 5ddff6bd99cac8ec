"""Every command ends in one place, with its own exit code, and no interpreter is finalised."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cli import COMMANDS

ROOT = Path(__file__).parents[3]
FINALISED = 99
"""Exit code of a process whose interpreter was finalised: threads of Temporal may abort it then."""

EVERY_COMMAND = f"""
import atexit, json, os, sys
from workers.cli import main
from tests.support.cli import COMMANDS

atexit.register(os._exit, {FINALISED})
codes = {{}}
for path in COMMANDS:
    for option in ("--help", "--no-such-option"):
        child = os.fork()
        if child == 0:
            for number in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            sys.argv = ["docflow", *path, option]
            main()
        _, status = os.waitpid(child, 0)
        codes[" ".join((*path, option))] = os.waitstatus_to_exitcode(status)
print(json.dumps(codes))
sys.stdout.flush()
os._exit(0)
"""


def run(code: str, **streams: int) -> subprocess.CompletedProcess[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={},
        text=True,
        check=False,
        timeout=300,
        **pipes,
    )


def test_every_command_ends_in_the_one_place() -> None:
    done = run(EVERY_COMMAND)
    assert done.returncode == 0, done.stderr
    expected = {" ".join((*path, "--help")): 0 for path in COMMANDS}
    expected |= {" ".join((*path, "--no-such-option")): 2 for path in COMMANDS}
    assert json.loads(done.stdout) == expected


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("def command(): pass", 0),
        ("def command(): raise typer.Exit(4)", 4),
        ("def command(): sys.exit('no number')", 1),
        ("def command(): raise KeyboardInterrupt", 130),
        ("def command(): raise LookupError('a defect')", 1),
    ],
)
def test_the_exit_code_is_that_of_the_command(command: str, code: int) -> None:
    done = run(
        f"""
import atexit, os, sys, typer
import workers.cli.app as module
from workers.cli import main

{command}

module.app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
module.app.command()(command)
atexit.register(os._exit, {FINALISED})
sys.argv = ["docflow"]
print("its output")
main()
"""
    )
    assert (done.returncode, done.stdout) == (code, "its output\n")
    assert ("LookupError: a defect" in done.stderr) == ("LookupError" in command)


def test_a_defect_of_a_process_is_logged_without_secrets() -> None:
    done = run(
        """
import sys
import workers.cli.app as module
from workers.cli import main
from workers.logs import configure_logs

def app(prog_name):
    configure_logs({"DOCFLOW_LOG_FORMAT": "json", "DOCFLOW_JWT_KEY": "planted-key"})
    raise LookupError("planted-key")

module.app = app
main()
"""
    )
    [line] = [json.loads(line) for line in done.stderr.splitlines()]
    assert (done.returncode, line["level"]) == (1, "critical")
    assert "LookupError: ***" in line["error"] and "planted-key" not in done.stderr


def to_full_disk(code: str) -> subprocess.CompletedProcess[str]:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        return run(code, stdout=full)
    finally:
        os.close(full)


def to_closed_pipe(code: str) -> subprocess.CompletedProcess[str]:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return run(code, stdout=writing)
    finally:
        os.close(writing)


def command(body: str) -> str:
    """A program whose only command does this."""
    return f"""
import atexit, os, sys, typer
import workers.cli.app as module
from workers.cli import main
from workers.cli.output import console, table

def command():
    {body}

module.app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
module.app.command()(command)
atexit.register(os._exit, {FINALISED})
sys.argv = ["docflow"]
main()
"""


WAYS = ["typer.echo('x')", "console().print(table('a'))"]
"""In which commands write."""


@pytest.mark.parametrize("way", WAYS)
def test_output_on_a_full_disk_is_one_sentence_and_an_exit_code_of_its_own(way: str) -> None:
    done = to_full_disk(command(way))
    sentence = "docflow: cannot write to standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (5, sentence)


@pytest.mark.parametrize("way", WAYS)
def test_a_closed_pipe_ends_a_command_quietly(way: str) -> None:
    done = to_closed_pipe(command(way))
    assert (done.returncode, done.stderr) == (141, "")


def test_a_failure_keeps_its_exit_code_when_its_output_is_lost() -> None:
    done = to_full_disk(command("sys.stdout.write('x'); raise typer.Exit(4)"))
    assert done.returncode == 4


@pytest.mark.parametrize("options", [["--yes"], ["--yes", "--json"]])
@pytest.mark.parametrize(("destination", "code"), [(to_full_disk, 5), (to_closed_pipe, 141)])
def test_runs_are_not_retried_when_the_output_cannot_be_written(
    destination: Callable[[str], subprocess.CompletedProcess[str]], code: int, options: list[str]
) -> None:
    done = destination(
        f"""
import os, sys
import workers.cli.app as module
from tests.support.cli_fakes import FakeInstallation
from tests.unit.cli.test_bulk_answers import PARKED, ManyParked
from workers.cli import main
from workers.cli.context import CliContext

runs = ManyParked(PARKED)
installation = FakeInstallation(runs=runs)
real = module.app

def app(prog_name):
    try:
        real(prog_name=prog_name, obj=CliContext(installation.environment))
    finally:
        print(len(runs.answers), "retried", file=sys.stderr)

module.app = app
sys.argv = ["docflow", "retry", "--all", *{options}]
with installation.reached():
    main()
"""
    )
    assert done.returncode == code
    assert done.stderr.splitlines()[0] == "0 retried"
