"""`docflow retry --all`: a count first, then every parked run, some at a time."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.cli_fakes import FakeInstallation, FakeRuns
from workers.shared.cli import answers
from workers.shared.services.errors import Refused
from workers.shared.services.inbox import AT_ONCE
from workflows.imports.runs import ImportState, ImportStatus, Retry
from workflows.shared.contracts import Answer


class ManyParked(FakeRuns):
    """Imports that are parked, each with its reason.

    Args:
        reasons: By workflow id.
        refuse: Ids of runs that refuse every answer.
    """

    def __init__(self, reasons: Mapping[str, str], refuse: Sequence[str] = ()) -> None:
        super().__init__()
        self._reasons, self._refuse = reasons, refuse
        self._in_flight = 0
        self.most = 0
        """So many were answered at a time."""

    async def list(self, query: str, limit: int | None) -> Sequence[Any]:
        await super().list(query, 0)
        assert limit is None
        return [SimpleNamespace(id=id) for id in self._reasons if "Pipeline = 'imports'" in query]

    async def query(self, workflow_id: str, name: str, result_type: Any) -> Any:
        assert (name, result_type) == ("status", ImportStatus)
        reason = self._reasons[workflow_id]
        return ImportStatus(state=ImportState.PARKED, step="prepare", reason=reason)

    async def answer(self, workflow_id: str, name: str, answer: Retry | Answer) -> ImportStatus:
        self._in_flight += 1
        self.most = max(self.most, self._in_flight)
        await asyncio.sleep(0)
        self._in_flight -= 1
        if workflow_id in self._refuse:
            raise Refused("retry was refused: this run is not parked")
        return await super().answer(workflow_id, name, answer)


PARKED = {
    "import/P1/T1": "there is no file a.csv",
    "import/P1/T2": "No space left on the disk",
    "import/P1/T3": "the header row is missing",
}


def retry_all(*options: str, **fields: Any) -> tuple[Any, list[str]]:
    """What the command prints, and the runs that were retried."""
    runs = ManyParked(**{"reasons": PARKED, **fields})
    done = FakeInstallation(runs=runs).docflow("retry", "--all", *options)
    assert all(name == "retry" and answer.by == "ada" for _, name, answer in runs.answers)
    return done, [id for id, *_ in runs.answers]


def test_the_count_is_shown_first_and_nothing_is_done_without_a_yes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "is_interactive", lambda: True)
    done, answered = retry_all()
    assert done.stdout.startswith("3 parked runs: imports 3\nRetry 3 parked runs? [y/N]: ")
    assert (done.exit_code, answered) == (1, [])


def test_without_a_terminal_nothing_is_asked_and_nothing_is_done() -> None:
    done, answered = retry_all()
    assert (done.exit_code, answered) == (2, [])
    assert done.stderr.startswith("docflow: there is no terminal to ask at: add --yes")


def test_all_are_retried() -> None:
    done, answered = retry_all("--yes")
    assert (done.exit_code, sorted(answered)) == (0, sorted(PARKED))
    assert done.stdout.splitlines() == ["3 parked runs: imports 3", "3 retried, 0 failed"]


def test_a_dry_run_lists_them_and_retries_none() -> None:
    done, answered = retry_all("--dry-run")
    assert done.stdout.splitlines() == ["3 parked runs: imports 3", *PARKED]
    assert (done.exit_code, answered) == (0, [])


def test_only_runs_that_are_parked_for_a_reason_with_the_text() -> None:
    _, answered = retry_all("--yes", "--reason", "no space LEFT")
    assert answered == ["import/P1/T2"]
    done, answered = retry_all("--yes", "--reason", "%")
    assert (done.stdout, answered) == ("0 parked runs\n", [])


def test_those_that_fail_are_named_and_the_others_are_retried() -> None:
    done, answered = retry_all("--yes", refuse=["import/P1/T2"])
    assert (done.exit_code, sorted(answered)) == (1, ["import/P1/T1", "import/P1/T3"])
    assert done.stdout.splitlines()[-1] == "2 retried, 1 failed"
    assert done.stderr.splitlines() == [
        "import/P1/T2: retry was refused: this run is not parked",
        "docflow: 1 of 3 parked runs could not be retried",
    ]
    done, _ = retry_all("--yes", "--json", refuse=["import/P1/T2"])
    printed = json.loads(done.stdout)
    assert printed["retried"] == ["import/P1/T1", "import/P1/T3"]
    assert list(printed["failed"]) == ["import/P1/T2"]


def test_a_run_that_offers_no_retry_is_named() -> None:
    done, _ = retry_all("--dry-run", reasons={"import/P1": "x"})
    assert done.stderr == "import/P1 is parked and offers no retry: left out\n"


def test_some_are_retried_at_a_time() -> None:
    runs = ManyParked({f"import/P1/T{number}": "x" for number in range(45)})
    done = FakeInstallation(runs=runs).docflow("retry", "--all", "--yes")
    assert (done.exit_code, len(runs.answers), runs.most) == (0, 45, AT_ONCE)


def test_pipeline_and_type_narrow_what_is_asked_of_temporal() -> None:
    runs = ManyParked(PARKED)
    installation = FakeInstallation(runs=runs)
    installation.docflow("retry", "--all", "--dry-run", "--pipeline", "batches", "--type", "it's")
    assert runs.queries == [
        "Pipeline = 'batches' AND ExecutionStatus = 'Running' AND State = 'parked' "
        "AND DocumentType = 'it\\'s'"
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "name the ID of a run, or --all"),
        (("P1/T1", "--all"), "--all and an ID do not go together"),
        (("P1/T1", "--yes"), "--yes needs --all"),
        (("P1/T1", "--pipeline", "imports"), "--pipeline needs --all"),
        (("--all", "--pipeline", "import"), "--pipeline import: there are imports, "),
        (("--all", "--json"), "--json asks no questions: add --yes, or --dry-run"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: tuple[str, ...], said: str) -> None:
    done = FakeInstallation().docflow("retry", *options)
    assert done.exit_code == 2 and said in done.stderr
