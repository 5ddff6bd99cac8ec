"""One answer for many values."""

from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from tests.support.spreadsheets.activities import (
    JUNIOR,
    MASTERS,
    SENIOR,
    SpreadsheetSetup,
    StagedSpreadsheet,
    table,
)
from workflows.shared.errors import INVALID_DECISION
from workflows.spreadsheets.decisions import AnswerRefused, refuse_malformed_answer
from workflows.spreadsheets.mappings import (
    CellDecision,
    CellDecisions,
    CellMapping,
    CellRule,
    MappingStatus,
)

HEADER = ["First name", "Last name", "Category", "Country"]
CATEGORIES = ("Junior (U18)", "Jüngste", "junge Damen", "Seniorr (18+)", "100 %", "Elite")
FILE = table(
    HEADER,
    *(
        [f"Anna{place}", "A", text, "Switzerlnd" if place else "Wonderland"]
        for place, text in enumerate(CATEGORIES)
    ),
)
CATEGORY, COUNTRY = "EVENT_CATEGORY_NAME", "ID_COUNTRY"
MANUAL, OPEN = MappingStatus.MANUAL_MATCHED, MappingStatus.UNMATCHED


async def collected(setup: SpreadsheetSetup) -> StagedSpreadsheet:
    prepared = await setup.prepare(FILE)
    assert (await prepared.collect()).open == 7
    return prepared


async def found(prepared: StagedSpreadsheet) -> dict[str, CellMapping]:
    pages = [page async for page in prepared.setup.store.mappings(prepared.order.uuid)]
    return {each.value: each for page in pages for each in page}


async def test_a_part_of_a_value_is_found_without_case_and_accents(
    setup: SpreadsheetSetup,
) -> None:
    prepared = await collected(setup)
    rule = CellRule(field=CATEGORY, text="JUNG", target_id=JUNIOR)
    summary = await prepared.decide_these((), rules=(rule,))
    assert summary.open == 5
    known = await found(prepared)
    assert (known["Jüngste"].target_id, known["junge Damen"].target_id) == (JUNIOR, JUNIOR)
    assert known["Jüngste"].target_name == "Junior (U18)"
    assert known["Junior (U18)"].status is MappingStatus.AUTO_MATCHED
    trail = await setup.select("decisions", "subject decision by")
    assert trail == [(f"{CATEGORY}: 2 values with “JUNG”", "Junior (U18)", "anna")]


async def test_rules_are_applied_in_their_order_after_decisions(setup: SpreadsheetSetup) -> None:
    prepared = await collected(setup)
    ids = await prepared.ids()
    summary = await prepared.decide_these(
        (CellDecision(id=ids["Elite"], target_id=MASTERS),),
        rules=(
            CellRule(confirm=True, min_score=0.8),
            CellRule(field=CATEGORY, create=True),
            CellRule(ignore=True),
        ),
    )
    assert summary.open == 0
    known = await found(prepared)
    assert known["Elite"].target_id == MASTERS
    assert (known["Switzerlnd"].status, known["Switzerlnd"].target_name) == (MANUAL, "Switzerland")
    assert known["Seniorr (18+)"].target_id == SENIOR
    assert known["Jüngste"].create
    assert known["100 %"].create
    assert known["Wonderland"].status is MappingStatus.IGNORED


async def test_suggestions_below_the_least_score_stay_open(setup: SpreadsheetSetup) -> None:
    prepared = await collected(setup)
    (suggested,) = (await found(prepared))["Switzerlnd"].alternatives
    too_much = CellRule(confirm=True, min_score=min(suggested.score + 0.001, 1))
    await prepared.decide_these((), rules=(too_much,))
    assert (await found(prepared))["Switzerlnd"].status is OPEN
    await prepared.decide_these((), 3, rules=(CellRule(confirm=True, min_score=suggested.score),))
    assert (await found(prepared))["Switzerlnd"].target_name == "Switzerland"


async def test_answers_of_rules_are_taken_back_by_another(setup: SpreadsheetSetup) -> None:
    prepared = await collected(setup)
    before = await found(prepared)
    everything = CellRule(field=CATEGORY, status=None, ignore=True)
    await prepared.decide_these((), rules=(everything, CellRule(ignore=True)))
    assert {each.status for each in (await found(prepared)).values()} == {MappingStatus.IGNORED}
    await prepared.decide_these((), 3, rules=(CellRule(status=None, reset=True),))
    assert await found(prepared) == before


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({"field": CATEGORY, "target_id": 4711}, "there is no Category 4711 to choose"),
        ({"field": COUNTRY, "create": True}, "Country takes what is there already"),
        ({"field": "EMAIL", "ignore": True}, "values of EMAIL refer to nothing"),
        ({"field": "PERSON", "target_id": 1}, "not every question is about one person"),
    ],
)
async def test_a_rule_that_cannot_be_applied_changes_nothing(
    setup: SpreadsheetSetup, rule: dict[str, Any], reason: str
) -> None:
    prepared = await collected(setup)
    before = await found(prepared)
    rules = (CellRule(ignore=True), CellRule.model_validate(rule))
    with pytest.raises(ApplicationError, match=f"rule 2: .*{reason}") as caught:
        await prepared.decide_these((), rules=rules)
    assert caught.value.type == INVALID_DECISION
    assert await found(prepared) == before


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({}, "needs exactly one of"),
        ({"ignore": True, "reset": True}, "needs exactly one of"),
        ({"create": True}, "name the field"),
        ({"target_id": 4}, "name the field"),
        ({"ignore": True, "min_score": 0.5}, "a least score goes with confirm"),
        ({"field": "PERSON", "question": "MAIL_MISSING", "reset": True}, "takes confirm, ignore"),
    ],
)
def test_a_malformed_rule_is_refused_at_once(rule: dict[str, Any], reason: str) -> None:
    answer = CellDecisions(by="anna", rules=(CellRule.model_validate(rule),))
    with pytest.raises(AnswerRefused, match=f"rule 1: .*{reason}"):
        refuse_malformed_answer(answer)


def test_an_answer_that_says_nothing_is_refused() -> None:
    with pytest.raises(AnswerRefused, match="neither decisions nor rules"):
        refuse_malformed_answer(CellDecisions(by="anna"))
