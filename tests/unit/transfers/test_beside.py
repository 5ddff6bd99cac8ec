"""What the benchmark of a single event beside a burst says, and when it says nothing."""

from typing import Any

import pytest

from benchmarks.transfers.beside import Measurement, Single, table


def measured(*seconds: float, **fields: Any) -> Measurement:
    singles = [Single(each, before=900, after=800) for each in seconds]
    given = {"wanted": 40, "taken_in": 1_000, "carried_out": 100, **fields}
    return Measurement(singles=singles, **given)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (measured(*[0.5] * 40), "target at most 2.00 s: met"),
        (measured(*[0.5] * 37, 3.0, 3.0, 3.0), "**not met**"),
        (measured(*[0.5] * 40, carried_out=0), "**not measured**"),
        (measured(*[0.5] * 12), "12 of 40 single events were measured: **not measured**"),
        (measured(), "0 of 40 single events were measured: **not measured**"),
        (measured(taken_in=300, late=60.0), "the machine is too slow"),
        (measured(0.5, late=60.0, waited=50.0), "the machine is too slow"),
        (measured(0.5, 9.0, 9.0, late=60.0, waited=50.0), "3 of 40 took more than 2 s"),
    ],
)
def test_a_target_is_met_only_by_what_was_seen(found: Measurement, verdict: str) -> None:
    assert verdict in found.verdict()
    assert ("s: met" in found.verdict()) == ("s: met" in verdict)


def test_a_table_without_any_single_event_is_reported() -> None:
    text = table(1_000, measured(late=60.0)).markdown()
    assert "0 of 40" in text
    assert "**not measured**" in text
