"""Tables that are loaded one after another: `loads/*.toml` has what becomes of the rows.

Each step of a case loads a content, the report of the step before with `corrections`, or the last
content again. It says counts, problems (line, column, value, reason up to `...`), note, and why a
person is asked (`held_back`) or the load fails (`error`, `refused`). `stored` is what the table
holds in the end.
"""

from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest
from temporalio.exceptions import ApplicationError

from tests.cases.corpus import Case, cases
from tests.support.imports.activities import ActivityPorts
from tests.support.imports.loads import corrected, load
from workflows.imports.runs import Counts, HandlerOutcome

CASES: Final = cases(Path(__file__).parent / "loads")
_SCOPE: Final = ("project_id", "service_id")


def stored(ports: ActivityPorts) -> list[dict[str, str]]:
    """Rows of the only table, without scope and blank values."""
    return [
        {
            name: f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)
            for name, value in row.items()
            if value is not None and name not in _SCOPE
        }
        for rows in ports.store.tables.values()
        for row in rows.values()
    ]


def problems(outcome: HandlerOutcome, step: Case) -> list[list[Any]]:
    """Problems of a load, each reason as far as the step writes it."""
    likes = [like for *_, like in step.get("problems", ())]
    likes += [""] * len(outcome.problems)
    return [
        [
            *(each.line or "", each.column or "", each.value or ""),
            f"{each.reason[: len(like) - 3]}..." if like.endswith("...") else each.reason,
        ]
        for each, like in zip(outcome.problems, likes, strict=False)
    ]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_loads_leave_these_rows(case: Case, tmp_path: Path) -> None:
    ports, outcome = ActivityPorts(tmp_path), HandlerOutcome()
    type = case.get("type", "equipment")
    for step in case["step"]:
        content = None
        if "corrections" in step:
            content = await corrected(ports, outcome, step["corrections"])
        elif "content" in step:
            content = step["content"].encode(step.get("written_in", "utf-8"))
        fields = step.get("fields", {})
        if "error" in step:
            with pytest.raises(ApplicationError) as failed:
                await load(ports, content, type=type, **fields)
            assert (failed.value.type, failed.value.non_retryable) == (step["error"], True)
            assert failed.value.message == step["refused"]
            assert not ports.scratch.exists() or list(ports.scratch.iterdir()) == []
            continue
        outcome = await load(ports, content, type=type, **fields)
        assert outcome.counts == Counts(**step["counts"])
        assert problems(outcome, step) == step.get("problems", [])
        assert (outcome.note or "") == step.get("note", "")
        assert (outcome.held_back or "") == step.get("held_back", "")
        assert (outcome.report is not None) == (outcome.problem_count > 0)
    assert stored(ports) == case.get("stored", [])
    assert ports.store.as_of == case.get("as_of", ports.store.as_of)
