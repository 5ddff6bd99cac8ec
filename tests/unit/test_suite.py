"""The rules of the suite itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SKIPPED_TESTS = """
import pytest

@pytest.mark.skip(reason="by a mark")
def test_marked(): pass

@pytest.fixture
def part(): pytest.skip("by a fixture")

def test_without_its_part(part): pass

def test_that_stops(): pytest.skip("by itself")

def test_that_runs(): pass

@pytest.mark.xfail
def test_of_what_is_known_not_to_work(): assert False
"""
SKIPPED_MODULE = 'import pytest; pytest.skip("as a whole", allow_module_level=True)'


@pytest.mark.parametrize("processes", [0, 2])
@pytest.mark.parametrize(
    ("content", "in_ci", "elsewhere"),
    [
        (
            SKIPPED_TESTS,
            "1 failed, 1 passed, 1 xfailed, 2 errors",
            "1 passed, 3 skipped, 1 xfailed",
        ),
        (SKIPPED_MODULE, "1 error", "1 skipped"),
    ],
    ids=["tests", "module"],
)
def test_what_is_skipped_fails_in_ci_alone(
    tmp_path: Path, content: str, in_ci: str, elsewhere: str, processes: int
) -> None:
    (tmp_path / "test_of_a_case.py").write_text(content)
    code, said = _run(tmp_path, processes, CI="true")
    assert code != 0 and f"= {in_ci} in" in said
    assert "a test that is skipped fails in CI" in said
    code, said = _run(tmp_path, processes)
    assert code != pytest.ExitCode.TESTS_FAILED and f"= {elsewhere} in" in said


def _run(folder: Path, processes: int, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", os.devnull),
            *("-n", str(processes), "-p", "no:cacheprovider", str(folder)),
        ],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout
