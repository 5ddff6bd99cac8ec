"""Every command ends in one place, with its own exit code, and no interpreter is finalised."""

import json
import os
import subprocess
import sys
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


def test_output_that_cannot_be_written_is_a_failure() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = run(
            f"""
import atexit, os, sys
from workers.cli import _leave

atexit.register(os._exit, {FINALISED})
sys.stdout.write("x")
_leave(0)
""",
            stdout=full,
        )
    finally:
        os.close(full)
    assert done.returncode == 1
