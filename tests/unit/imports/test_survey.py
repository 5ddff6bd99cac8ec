"""What the values of a column show about how it is written, however quickly they are looked at."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.imports import survey
from workflows.imports.header import find_header
from workflows.imports.survey import ReadingOptions, Survey
from workflows.imports.types import EQUIPMENT
from workflows.shared.notations import Notation

_NUMBERS = st.sampled_from(
    (
        *("", "1", "100.25", "7.5", "1.234", "1,5", "1.", ".5", "-2.5", "1 000.5", "2\n3.5"),
        *("12 EUR", "9" * 61, "9" * 70 + ".5", " 4.5", "abc"),
    )
)


def notation_of(values: list[str]) -> Notation | None:
    """What is settled of a column of rates."""
    header = find_header([(1, ["Code", "Rate"])], EQUIPMENT)
    found = Survey(EQUIPMENT, header)
    found.add([(line, [f"E-{line}", value]) for line, value in enumerate(values, 2)])
    return found.finish(ReadingOptions()).notations["rate"]


@given(st.lists(_NUMBERS, min_size=1, max_size=5))
def test_a_quick_look_shows_what_a_thorough_one_does(values: list[str]) -> None:
    quick = notation_of(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(survey, "_PLAIN_POINTS", survey.re.compile(r"(?!)"))
        assert notation_of(values) == quick


def test_plain_decimals_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "number_notations", lambda text: pytest.fail(text))
    assert notation_of(["100.25", "7.5", "", "12"]) is Notation.POINT
