"""What CI runs, with programs that only say that they were called."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "run"
STEPS = ["make lint", "make test", "make chaos"]

Ci = Callable[..., tuple[int, list[str], str]]


@pytest.fixture
def ci(tmp_path: Path) -> Ci:
    """Runs a copy of the script beside some Pythons: exit code, calls of make, output."""
    programs, calls = tmp_path / "bin", tmp_path / "calls"
    programs.mkdir()
    for name in ("bash", "dirname", "env"):
        (programs / name).symlink_to(shutil.which(name) or name)
    script = tmp_path / "tree" / ".ci" / "run"
    script.parent.mkdir(parents=True)
    shutil.copy(SCRIPT, script)

    def program(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def run(
        *versions: str, pyenv: str | None = None, fails: str = "none"
    ) -> tuple[int, list[str], str]:
        calls.write_text("")
        program(programs / "chromium", "exit 1")
        program(programs / "make", f'echo "make $*" >> {calls}\n[ "$1" != {fails} ]')
        pythons = {version: programs / f"python{version}" for version in versions}
        if pyenv is not None:
            pythons[pyenv] = tmp_path / "pyenv" / "versions" / f"{pyenv}.0" / "bin" / "python3"
        for version, path in pythons.items():
            program(path, f'[[ "$2" == *"!= ({version.replace(".", ", ")})"* ]]')
        done = subprocess.run(
            [script],
            capture_output=True,
            text=True,
            env={"PATH": str(programs), "PYENV_ROOT": str(tmp_path / "pyenv")},
        )
        made = calls.read_text().splitlines()
        return done.returncode, made, done.stdout + done.stderr

    return run


def test_everything_is_run_and_the_newest_python_at_last(ci: Ci, tmp_path: Path) -> None:
    code, made, said = ci("3.11", "3.12", pyenv="3.13")
    newest = tmp_path / "pyenv" / "versions" / "3.13.0" / "bin" / "python3"
    smoke = f"make smoke PYTHON={newest} VENV=build/newest-python"
    assert (code, made) == (0, ["make tools PYTHON=python3.11", *STEPS, smoke]), said
    assert "smoke on 3.13.0" in said and said.count("exit code 0") == 6


@pytest.mark.parametrize("versions", [["3.11"], []])
def test_no_newer_python_is_reported_and_is_no_failure(ci: Ci, versions: list[str]) -> None:
    code, made, said = ci(*versions)
    assert (code, made[1:]) == (0, STEPS), said
    assert "no Python newer than that of the tests on this machine" in said


def test_a_step_that_fails_is_the_last_one(ci: Ci) -> None:
    code, made, said = ci("3.11", "3.13", fails="test")
    assert (code, made[1:]) == (1, STEPS[:2])
    assert said.splitlines()[-1].endswith("exit code 1")
