"""A receipt shows whether, and where, it was changed."""

import hashlib
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.shared.errors import RuleViolation
from workflows.transfers.receipts import (
    ReceiptFile,
    ReceiptStep,
    assemble_receipt,
    canonical,
    in_order,
    seal_step,
    verify,
)

ID = "a" * 64
EVENT = "e" * 64
ACTIONS = ("ReadFile", "Decrypt", "Scan", "WriteFile")


def steps_of(*actions: str) -> list[ReceiptStep]:
    steps: list[ReceiptStep] = []
    for index, action in enumerate(actions):
        steps.append(
            seal_step(
                ReceiptStep(
                    transfer_id=ID,
                    index=index,
                    action=action,
                    at=datetime(2026, 11, 22, 14, index, tzinfo=UTC),
                    files=(ReceiptFile(name="Zähler.csv", size=7, sha256_after=f"{index}" * 64),),
                    previous=steps[-1].sha256 if steps else EVENT,
                    sha256="",
                )
            )
        )
    return steps


def plain() -> dict[str, Any]:
    receipt: dict[str, Any] = json.loads(
        assemble_receipt(ID, EVENT, steps_of(*ACTIONS)).model_dump_json()
    )
    return receipt


def test_a_receipt_is_whole_as_it_was_written() -> None:
    receipt = plain()
    assert verify(receipt).whole
    assert verify(receipt, expected=receipt["sha256"]).whole
    assert verify(json.loads(canonical(receipt))).whole


def test_a_hash_is_that_of_the_canonical_json_without_itself() -> None:
    step = plain()["steps"][1]
    stated = step.pop("sha256")
    text = json.dumps(step, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert hashlib.sha256(text.encode()).hexdigest() == stated


def test_a_field_of_a_later_release_counts() -> None:
    receipt = plain()
    receipt["steps"][2]["a later field"] = 1
    assert verify(receipt).index == 2


def change(receipt: dict[str, Any]) -> None:
    receipt["steps"][1]["files"][0]["sha256_after"] = "f" * 64


def change_with_hash(receipt: dict[str, Any]) -> None:
    change(receipt)
    step = receipt["steps"][1]
    step["sha256"] = seal_step(ReceiptStep.model_validate(step)).sha256


def cut_off(receipt: dict[str, Any]) -> None:
    receipt["steps"].pop()


@pytest.mark.parametrize(
    ("alter", "index", "reason"),
    [
        (change, 1, r"step 2 \(Decrypt\) was changed"),
        (change_with_hash, 2, r"step 3 \(Scan\) does not follow step 2 \(Decrypt\)"),
        (cut_off, None, "the end is missing"),
        (lambda receipt: receipt["steps"].pop(1), 1, r"step 2 \(Scan\) does not follow"),
        (lambda receipt: receipt["steps"].pop(0), 0, "does not follow the event"),
        (lambda receipt: receipt["steps"].reverse(), 0, "does not follow the event"),
        (lambda receipt: receipt.update(event="b" * 64), 0, "does not follow the event"),
        (lambda receipt: receipt.update(transfer_id="b" * 64), 0, "of another transfer"),
        (lambda receipt: receipt["steps"].clear(), None, "the end is missing"),
        (lambda receipt: receipt.pop("steps"), None, "not a receipt"),
        (lambda receipt: receipt["steps"][0].pop("previous"), None, "not a receipt"),
        (lambda receipt: receipt["steps"][0].update(action="\ud800"), 0, "was changed"),
        (lambda receipt: receipt["steps"][0].update(at=float("nan")), 0, "was changed"),
    ],
)
def test_a_change_is_found_at_its_step(
    alter: Callable[[dict[str, Any]], object], index: int | None, reason: str
) -> None:
    receipt = plain()
    alter(receipt)
    finding = verify(receipt)
    assert (finding.whole, finding.index) == (False, index)
    assert finding.problem is not None
    assert re.search(reason, finding.problem)


def test_a_receipt_that_was_written_anew_differs_from_the_recorded_hash() -> None:
    forged = assemble_receipt(ID, EVENT, steps_of("ReadFile", "WriteFile")).model_dump(mode="json")
    assert verify(forged).whole
    finding = verify(forged, expected=plain()["sha256"])
    assert finding.problem is not None
    assert "not the one of this transfer" in finding.problem


def test_steps_that_are_no_chain_make_no_receipt() -> None:
    with pytest.raises(RuleViolation, match="step 2"):
        assemble_receipt(ID, EVENT, steps_of(*ACTIONS)[::2])


def test_a_receipt_without_steps_is_that_of_its_event() -> None:
    receipt = assemble_receipt(ID, EVENT, [])
    assert receipt.sha256 == EVENT
    assert verify(receipt.model_dump(mode="json")).whole


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda children: (
            st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children)
        ),
    )
)
def test_whatever_is_no_receipt_is_refused(value: Any) -> None:
    assert not verify(value).whole


@given(st.data())
def test_any_change_of_a_value_is_found(data: st.DataObject) -> None:
    receipt = plain()
    step = receipt["steps"][data.draw(st.integers(0, len(ACTIONS) - 1))]
    name = data.draw(st.sampled_from(sorted(step)))
    step[name] = data.draw(st.text(min_size=1, max_size=64).filter(lambda text: text != step[name]))
    assert not verify(receipt).whole


def test_steps_of_actions_that_were_not_carried_out_stand_in_their_places() -> None:
    steps = steps_of(*ACTIONS)
    assert in_order(EVENT, [steps[0], steps[2], steps[3], steps[1]]) == steps
    with pytest.raises(RuleViolation, match="does not follow"):
        assemble_receipt(ID, EVENT, in_order(EVENT, [steps[0], steps[2]]))


def test_the_outcome_of_a_step_is_covered_by_its_hash_and_absent_where_there_is_none() -> None:
    [step] = steps_of("WriteFile")
    assert not {"outcome", "reason", "decided_by"} & set(step.model_dump(mode="json"))
    skipped = seal_step(step.model_copy(update={"outcome": "skipped", "decided_by": "ann"}))
    receipt: dict[str, Any] = json.loads(assemble_receipt(ID, EVENT, [skipped]).model_dump_json())
    assert verify(receipt).whole
    receipt["steps"][0]["decided_by"] = "bob"
    assert verify(receipt).index == 0
