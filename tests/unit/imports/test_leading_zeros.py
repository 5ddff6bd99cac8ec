"""Codes that differ only in leading zeros are found by few questions to the table."""

from hypothesis import given
from hypothesis import strategies as st

from workflows.imports.validation import Codes, lookalikes, spellings

CODE = st.text("00017A-", min_size=1, max_size=5)
CODES = st.tuples(CODE, CODE)


def is_zero_led(codes: Codes) -> bool:
    return any(code.startswith("0") for code in codes)


@given(st.dictionaries(CODES, st.booleans(), max_size=8), st.lists(CODES, max_size=8, unique=True))
def test_every_code_that_differs_in_zeros_alone_is_looked_for(
    known: dict[Codes, bool], found: list[Codes]
) -> None:
    led = [codes for codes, is_own in known.items() if is_zero_led(codes) and not is_own]
    asked = spellings(found, {len(codes[0]) for codes in led})
    answered = {codes: is_own for codes, is_own in known.items() if codes[0] in asked}
    if led or any(map(is_zero_led, found)):
        assert lookalikes(found, answered) == lookalikes(found, known)


def test_spellings_are_as_many_as_there_are_lengths() -> None:
    assert spellings([("007", "x"), ("A7", "x")], [3, 5]) == ["00007", "007", "7", "A7"]


def test_what_the_load_has_written_itself_is_no_question() -> None:
    assert lookalikes([("7",)], {("007",): True}) == {}
    assert lookalikes([("7",)], {("007",): False}) == {("7",): ("007",)}
    assert lookalikes([("7",)], {("007",): False, ("7",): True}) == {}
