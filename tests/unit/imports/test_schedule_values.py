"""Texts of a Primavera file as values, and ids as codes."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.files.schedules.entities import WBS_NODES, SpillingMap, WbsPaths
from adapters.files.schedules.records import (
    Values,
    WbsRecord,
    clean_code,
    decimal_text,
    parse_moment,
    parse_number,
)
from adapters.ports.errors import UnreadableDocument


@given(st.decimals(-(10**12), 10**12, places=6))
def test_every_number_of_the_column_survives(number: Decimal) -> None:
    assert parse_number(str(number)) == number
    assert Decimal(decimal_text(number)) == number


@given(st.text(max_size=300))
def test_no_text_makes_a_value_fail(raw: str) -> None:
    values = Values()
    values.number(1, "a", raw)
    values.integer(1, "b", raw)
    values.moment(1, "c", raw)
    text = values.text(1, "d", raw)
    assert text is None or text == raw.strip()
    assert "\n" not in clean_code(raw)


def test_whole_numbers_fit_32_bits() -> None:
    values = Values()
    assert values.integer(1, "sequence", "100.0") == 100
    assert values.integer(1, "sequence", "0.5") is None
    assert values.integer(1, "sequence", "3000000000") is None
    assert len(values.remarks) == 2


def test_an_offset_does_not_move_a_local_time() -> None:
    assert parse_moment("2025-04-01T07:00:00+02:00").isoformat() == "2025-04-01T07:00:00"


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.text("xyz", max_size=3)), max_size=40),
    st.integers(0, 8),
)
def test_a_spilling_map_is_a_map(pairs: list[tuple[str, str]], in_memory: int) -> None:
    codes, model = SpillingMap(in_memory), dict[str, str]()
    for key, value in pairs:
        codes.put(key, value)
        model[key] = value
    assert {key: codes.get(key) for key in "abcdefgh"} == {
        key: model.get(key) for key in "abcdefgh"
    }
    codes.close()


def node(id: str, parent: str, code: str, top: str = "") -> WbsRecord:
    return WbsRecord(1, id, "1", parent, code, "name", "", top)


def test_paths_lead_from_the_top() -> None:
    wbs = WbsPaths(
        [node("3", "2", "A10"), node("2", "1", "ERE"), node("1", "77", "JOB", "Y")], "P1"
    )
    assert [wbs.path(id) for id in "123"] == ["JOB", "JOB.ERE", "JOB.ERE.A10"]
    assert [wbs.parent_path(found) for found in wbs.nodes.values()] == ["JOB.ERE", "JOB", None]
    assert wbs.path("9") is None


def test_the_top_is_found_by_the_project_code_or_made() -> None:
    unmarked = WbsPaths([node("1", "77", "P1"), node("2", "1", "ERE")], "P1")
    assert [unmarked.path(id) for id in "12"] == ["P1", "P1.ERE"]
    without = WbsPaths([node("2", "77", "ERE")], "P1")
    assert (without.top, without.path("2")) == (None, "P1.ERE")


def test_circles_nameless_nodes_and_endless_paths_have_no_path() -> None:
    circle = WbsPaths([node("1", "2", "A"), node("2", "1", "B")], "P1")
    assert [circle.path(id) for id in "12"] == [None, None]
    nameless = WbsPaths([node("1", "", ""), node("2", "1", "B")], "P1")
    assert [nameless.path(id) for id in "12"] == [None, None]
    deep = WbsPaths([node(str(n), str(n - 1), "x" * 40) for n in range(1, 40)], "P1")
    assert deep.path("3") == "P1" + 3 * f".{'x' * 40}"
    assert deep.path("39") is None


def test_more_nodes_than_any_schedule_has_are_refused() -> None:
    many = (node(str(number), "", "x") for number in range(WBS_NODES + 1))
    with pytest.raises(UnreadableDocument, match="more than 100,000 WBS nodes"):
        WbsPaths(many, "P1")
