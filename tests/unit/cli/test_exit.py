"""Every command ends in one place, with its own exit code, and no interpreter is finalised."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.cli import COMMANDS

ROOT = Path(__file__).parents[3]
FINALISED = 99
"""Exit code of a process whose interpreter was finalised: threads of Temporal may abort it then."""

EVERY_COMMAND = f"""
import atexit, json, os, sys
from workers.shared.cli import main
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


WARM = """
import json, os, sys
import docflow.client.synchronous, typer, workers.shared.cli.app, workers.shared.logs

for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
        continue
    reading, writing = os.pipe()
    for number, path in enumerate((os.devnull, order["stdout"], order["stderr"])):
        os.dup2(writing if path is None else os.open(path, os.O_RDWR), number)
    os.close(reading)
    os.close(writing)
    exec(order["code"], {"__name__": "__main__"})
    break
"""
"""An interpreter that has loaded what commands load, and runs programs in copies of itself."""


@dataclass(frozen=True)
class Done:
    """A program that has ended."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Programs:
    """Runs programs, each in a process without settings."""

    warm: subprocess.Popen[str]
    folder: Path

    def run(self, code: str) -> Done:
        return self._run(code, str(self._empty("stdout")))

    def to_full_disk(self, code: str) -> Done:
        return self._run(code, "/dev/full")

    def to_closed_pipe(self, code: str) -> Done:
        """Its output goes to a pipe whose reader is closed."""
        return self._run(code, None)

    def _run(self, code: str, stdout: str | None) -> Done:
        stderr = self._empty("stderr")
        assert self.warm.stdin is not None and self.warm.stdout is not None
        order = {"code": code, "stdout": stdout, "stderr": str(stderr)}
        print(json.dumps(order), file=self.warm.stdin, flush=True)
        ended = self.warm.stdout.readline()
        assert ended, "the interpreter has ended"
        said = self.folder / "stdout"
        return Done(int(ended), said.read_text() if stdout == str(said) else "", stderr.read_text())

    def _empty(self, name: str) -> Path:
        path = self.folder / name
        path.write_text("")
        return path


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    with subprocess.Popen(
        [sys.executable, "-c", WARM],
        cwd=ROOT,
        env={},
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as warm:
        yield Programs(warm, tmp_path_factory.mktemp("programs"))


def test_every_command_ends_in_the_one_place(programs: Programs) -> None:
    done = programs.run(EVERY_COMMAND)
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
def test_the_exit_code_is_that_of_the_command(programs: Programs, command: str, code: int) -> None:
    done = programs.run(
        f"""
import atexit, os, sys, typer
import workers.shared.cli.app as module
from workers.shared.cli import main

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


def test_a_defect_of_a_process_is_logged_without_secrets(programs: Programs) -> None:
    done = programs.run(
        """
import sys
import workers.shared.cli.app as module
from workers.shared.cli import main
from workers.shared.logs import configure_logs

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


def command(body: str) -> str:
    """A program whose only command does this."""
    return f"""
import atexit, os, sys, typer
import workers.shared.cli.app as module
from workers.shared.cli import main
from workers.shared.cli.output import console, table

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
def test_output_on_a_full_disk_is_one_sentence_and_an_exit_code_of_its_own(
    programs: Programs, way: str
) -> None:
    done = programs.to_full_disk(command(way))
    sentence = "docflow: cannot write to standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (5, sentence)


@pytest.mark.parametrize("way", WAYS)
def test_a_closed_pipe_ends_a_command_quietly(programs: Programs, way: str) -> None:
    done = programs.to_closed_pipe(command(way))
    assert (done.returncode, done.stderr) == (141, "")


def test_a_failure_keeps_its_exit_code_when_its_output_is_lost(programs: Programs) -> None:
    done = programs.to_full_disk(command("sys.stdout.write('x'); raise typer.Exit(4)"))
    assert done.returncode == 4


@pytest.mark.parametrize("options", [["--yes"], ["--yes", "-o", "json"]])
@pytest.mark.parametrize(
    ("destination", "code"), [(Programs.to_full_disk, 5), (Programs.to_closed_pipe, 141)]
)
def test_runs_are_not_retried_when_the_output_cannot_be_written(
    programs: Programs,
    destination: Callable[[Programs, str], Done],
    code: int,
    options: list[str],
) -> None:
    done = destination(
        programs,
        f"""
import sys
import workers.shared.cli.app as module
from docflow.client.synchronous import Connection
from workers.shared.cli import main
from workers.shared.cli.context import CliContext

asked, real = [], module.app

def carry_out(connection, request):
    asked.append(request.body["dry_run"])
    nothing = {{"left_out": [], "failed": {{}}, "more": False}}
    return {{"dry_run": asked[-1], "found": ["import/P1/T1"], **nothing}}

def app(prog_name):
    try:
        gateway = {{"DOCFLOW_ADDRESS": "http://gateway", "DOCFLOW_TOKEN": "x"}}
        real(prog_name=prog_name, obj=CliContext(gateway))
    finally:
        print("only counted" if asked == [True] else asked, file=sys.stderr)

Connection.carry_out, module.app = carry_out, app
sys.argv = ["docflow", "retry", "--all", *{options}]
main()
""",
    )
    assert done.returncode == code
    assert done.stderr.splitlines()[0] == "only counted"
