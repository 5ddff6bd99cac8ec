"""The rules of the suite itself."""

import asyncio
import inspect
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import conftest
from tests.support.distribution import scope_of
from tests.support.side_by_side import side_by_side

pytest_plugins = ["pytester"]

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


@pytest.mark.parametrize(
    ("content", "in_ci", "elsewhere"),
    [
        (
            SKIPPED_TESTS,
            {"failed": 1, "passed": 1, "xfailed": 1, "errors": 2},
            {"passed": 1, "skipped": 3, "xfailed": 1},
        ),
        (SKIPPED_MODULE, {"errors": 1}, {"skipped": 1}),
    ],
    ids=["tests", "module"],
)
def test_what_is_skipped_fails_in_ci_alone(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    content: str,
    in_ci: Mapping[str, int],
    elsewhere: Mapping[str, int],
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(content)
    monkeypatch.setenv("CI", "true")
    strict = pytester.runpytest_inprocess(plugins=[conftest])
    strict.assert_outcomes(**in_ci)
    strict.stdout.fnmatch_lines("*a test that is skipped fails in CI*")
    monkeypatch.delenv("CI")
    pytester.runpytest_inprocess(plugins=[conftest]).assert_outcomes(**elsewhere)


def test_what_is_skipped_fails_in_ci_with_many_processes_too(tmp_path: Path) -> None:
    for name, content in (("tests", SKIPPED_TESTS), ("module", SKIPPED_MODULE)):
        (tmp_path / f"test_{name}.py").write_text(content)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", os.devnull),
            *("-p", "xdist", "-n", "2", "-p", "no:cacheprovider", str(tmp_path)),
        ],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "CI": "true", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "= 1 failed, 1 passed, 1 xfailed, 3 errors in" in done.stdout, done.stdout


def test_pages_go_to_one_process_and_other_files_to_any() -> None:
    """Each process with one of them would start servers, docflow's processes and a browser."""
    files = [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("tests/**/test_*.py"))]
    scopes = {file: scope_of(file) for file in files}
    pages = {
        file
        for file in files
        if file.startswith("tests/e2e/") and "site: PagesSetup" in (ROOT / file).read_text()
    }
    assert len(pages) >= 5
    assert {scopes.pop(file) for file in pages} == {"site: PagesSetup"}
    assert scopes.pop("tests/e2e/test_two_of_each.py") == scopes.pop(
        "tests/e2e/test_spreadsheet_docs.py"
    )
    assert scopes["tests/crash/test_reviews.py"] == "tests/crash/test_reviews.py"


@pytest.mark.parametrize("marker", ["postgis", "root", "real_rasters"])
def test_what_a_machine_cannot_test_is_left_out_and_named_once(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, marker: str
) -> None:
    _, said = conftest.NEEDED[marker]
    monkeypatch.setattr(conftest, "NEEDED", {marker: (lambda: None, said)})
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("CI", "true")
    pytester.makeini(f"[pytest]\nmarkers = {marker}")
    pytester.makepyfile(
        f"import pytest\n@pytest.mark.{marker}\ndef test_a(): assert 0\ndef test_b(): pass"
    )
    done = pytester.runpytest_inprocess(plugins=[conftest])
    done.assert_outcomes(passed=1, deselected=1)
    sentence = f"{said}: tests with the marker `{marker}` are left out"
    assert done.stdout.str().count(sentence) == 1


@pytest.mark.parametrize("chaos", [False, True])
def test_what_is_for_chaos_alone_is_left_to_it_and_that_is_said(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, chaos: bool
) -> None:
    monkeypatch.setattr(conftest, "NEEDED", {})
    monkeypatch.setattr(conftest, "CHAOS", chaos)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini("[pytest]\nmarkers = chaos")
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.chaos(alone=True)
        def test_a(): pass
        @pytest.mark.chaos
        def test_b(): pass
        """
    )
    done = pytester.runpytest_inprocess(plugins=[conftest])
    done.assert_outcomes(passed=1 + chaos, deselected=1 - chaos)
    assert (conftest.LEFT_TO_CHAOS in done.stdout.str()) is not chaos


MOST_LINES = 800


def test_no_file_is_longer_than_800_lines() -> None:
    folders = sorted(path.parent for path in ROOT.glob("*/__init__.py"))
    assert {"workflows", "activities", "workers"} <= {folder.name for folder in folders}
    longer = {
        str(path.relative_to(ROOT))
        for folder in {*folders, ROOT / "stack", ROOT / "benchmarks", ROOT / "tests"}
        for path in folder.rglob("*.py")
        # Migrations are written by a tool, and most of the client is generated.
        if path.parent.name not in ("versions", "client")
        and len(path.read_text().splitlines()) > MOST_LINES
    }
    assert longer == set(), "divide them by subject"


def test_no_test_skips_itself() -> None:
    """It would fail in CI; what a machine may lack has a marker instead."""
    skips = re.compile(r"pytest\.(mark\.skip|skip|importorskip)|unittest\.skip|SkipTest")
    found = [
        str(path.relative_to(ROOT))
        for path in (*(ROOT / "tests").rglob("*.py"), *(ROOT / "emulators").rglob("*.py"))
        if path != Path(__file__) and skips.search(path.read_text())
    ]
    assert found == []


def test_processes_can_be_interrupted_where_the_suite_runs_in_the_background() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        conftest.pytest_configure()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        done = subprocess.run(["sh", "-c", "kill -INT $$"], check=False)
    finally:
        signal.signal(signal.SIGINT, before)
    assert done.returncode == -signal.SIGINT


async def test_a_failure_beside_others_names_where_it_happened() -> None:
    ended: list[str] = []

    @side_by_side(queue="queues")
    async def holds(queue: str, wanted: str) -> None:
        await asyncio.sleep(0)
        ended.append(queue)
        assert queue in wanted, f"{queue} is not wanted"

    assert list(inspect.signature(holds).parameters) == ["queues", "wanted"]
    queues = {"sqs": "a", "service bus": "b", "memory": "c"}
    await holds(queues=queues, wanted="abc")
    with pytest.raises(AssertionError, match="b is not wanted") as one:
        await holds(queues=queues, wanted="ac")
    assert one.value.__notes__ == ["with service bus"]
    with pytest.raises(BaseExceptionGroup, match="with sqs, memory"):
        await holds(queues=queues, wanted="b")
    assert ended == ["a", "b", "c"] * 3


def test_only_replay_and_the_tests_of_the_sandbox_turn_it_on() -> None:
    turned_on = {
        path.name
        for folder in ("tests", "stack", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"sandboxed=True|DOCFLOW_WORKFLOW_SANDBOX", path.read_text())
    } - {Path(__file__).name}
    assert turned_on == {"test_histories.py", "test_sandbox.py"}
