"""Patterns of rules, against the same said otherwise."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.transfers.routes import matches, overlap, specificity

TEXTS = st.text("ab*.", max_size=8)
PATTERNS = st.text("ab*", max_size=8)
WORDS = st.text("ab", max_size=8)


def expression(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


@given(PATTERNS, TEXTS)
def test_an_asterisk_is_any_text(pattern: str, text: str) -> None:
    assert matches(pattern, text) == (expression(pattern).fullmatch(text) is not None)


@given(PATTERNS, PATTERNS, WORDS)
def test_what_both_take_is_an_overlap(one: str, other: str, text: str) -> None:
    if matches(one, text) and matches(other, text):
        assert overlap(one, other)


@given(PATTERNS, PATTERNS)
def test_overlap_is_the_same_in_both_directions(one: str, other: str) -> None:
    assert overlap(one, other) == overlap(other, one)


@given(WORDS, PATTERNS)
def test_a_text_overlaps_with_what_takes_it_and_nothing_else(text: str, pattern: str) -> None:
    assert overlap(text, pattern) == matches(pattern, text)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a*", "*b", True),
        ("a*", "b*", False),
        ("*a", "*b", False),
        ("a*c", "ab*", True),
        ("*x*", "*y*", True),
        ("a*b*c", "a*c*c", True),
        ("", "*", True),
        ("", "a", False),
    ],
)
def test_examples_of_overlaps(one: str, other: str, expected: bool) -> None:
    assert overlap(one, other) is expected


def test_a_hostile_pattern_costs_little() -> None:
    assert not matches("*a" * 240 + "b", "a" * 500)
    assert overlap("*a" * 240, "a*" * 240)


def test_more_text_says_more() -> None:
    ranked = ["exact", "TMS.*.eu", "TMS.*", "*"]
    assert sorted(ranked, key=specificity, reverse=True) == ranked
