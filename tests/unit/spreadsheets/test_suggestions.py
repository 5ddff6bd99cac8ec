"""What is suggested is right, and as often as docflow says."""

from collections.abc import Sequence
from functools import cache

import pytest

from activities.spreadsheets.entities import SUGGESTED_FROM, alike
from benchmarks.spreadsheets.suggestions import (
    BANDS,
    CALIBRATED,
    RIGHT,
    Judged,
    judge,
    mean_score,
    share_right,
)


@cache
def judged() -> Sequence[Judged]:
    return judge()


@pytest.mark.parametrize("unseen", [True, False])
def test_what_is_suggested_is_right(unseen: bool) -> None:
    suggested = [each for each in judged() if each.suggested and each.unseen is unseen]
    assert len(judged()) >= 300 and len(suggested) >= 50
    assert min(each.score for each in suggested) >= SUGGESTED_FROM
    assert share_right(suggested) >= RIGHT
    assert share_right([each for each in judged() if each.decided]) == 1


@pytest.mark.parametrize("band", BANDS)
def test_percentages_are_what_they_say(band: tuple[float, float]) -> None:
    low, high = band
    said = [each for each in judged() if each.suggested and low <= each.score < high]
    assert len(said) >= 20
    assert abs(share_right(said) - mean_score(said)) <= CALIBRATED


@pytest.mark.parametrize(
    ("text", "form"),
    [("u18", "u20"), ("women 10 km", "men 10 km"), ("age", "age group"), ("dragging", "drawing")],
)
def test_other_words_are_not_alike(text: str, form: str) -> None:
    assert alike(text, form) < SUGGESTED_FROM
