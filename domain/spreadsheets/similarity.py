"""How likely it is that two wordings mean the same; good enough to suggest, never to decide.

A score is the share of wordings alike in the same way that do mean the same, as measured on the
labelled pairs of `benchmarks/spreadsheets/suggestions.tsv`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

SUGGESTED_FROM: Final = 0.8
"""Floor: what is less likely is not suggested."""
POSSIBLE_FROM: Final = 0.5
"""What is less likely says nothing, whatever speaks for it beside."""
NAME_WITH_MORE: Final = 0.92
"""`Honorary member` for `Honorary`, among names of rows, of which few share a word."""
COMPARED_CHARACTERS: Final = 100

_SAME_WORDS: Final = 0.97
_ONE_SLIP: Final = 0.96
_TWO_SLIPS: Final = 0.92
_SHORTENED: Final = 0.9
_WITH_MORE: Final = 0.6
_WITHIN: Final = 0.5

_SHORTEST_SLIP: Final = 4
_LONG: Final = 8
"""Characters from which two slips are still the same word."""
_SHORTEST_PART: Final = 3
_SHORTEST_WITHIN: Final = 5
_ENDINGS: Final = ("s", "n", "en", "e", "er")
_FILLERS: Final = frozenset(
    (
        *("a", "an", "and", "any", "as", "by", "for", "from", "in", "m", "of", "on", "or", "s"),
        *("the", "to", "with", "your", "am", "d", "der", "des", "die", "das", "u", "und", "vom"),
        *("von", "zu", "zum", "l", "la", "le", "les"),
    )
)
"""Words that add nothing."""
_NEAR: Final = 70.0
"""Percent of likeness from which two texts are compared word by word."""
_COMPARED: Final = 50
_DIGITS: Final = re.compile(r"\d+")


def alike(text: str, form: str, with_more: float = _WITH_MORE) -> float:
    """How likely two wordings mean the same, from 0 to 1; 0 below `POSSIBLE_FROM`.

    Args:
        text: Normalised, as a person wrote it.
        form: Normalised, of what it may mean.
        with_more: How likely a text means a form that it holds beside other words.
    """
    if _DIGITS.findall(text) != _DIGITS.findall(form):
        # U18 is no misspelt U20.
        return 0.0
    words, others = _words(text), _words(form)
    one, other = "".join(words), "".join(others)
    if not one or not other:
        return 0.0
    if one == other or sorted(map(_stem, words)) == sorted(map(_stem, others)):
        return _SAME_WORDS
    if set(map(_stem, others)) < set(map(_stem, words)) and len(other) >= _SHORTEST_WITHIN:
        return with_more
    return max(_slips(one, other), _shortened(words, others), _within(one, other))


def _words(text: str) -> list[str]:
    words = text.split()
    return [word for word in words if word not in _FILLERS] or words


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_SLIP:
            return word.removesuffix(ending)
    return word


def _slips(one: str, other: str) -> float:
    shorter = min(len(one), len(other))
    if shorter < _SHORTEST_SLIP:
        return 0.0
    match OSA.distance(one, other, score_cutoff=2):
        case 1 if shorter > _SHORTEST_SLIP or one[0] == other[0]:
            return _ONE_SLIP
        case 2 if shorter >= _LONG:
            return _TWO_SLIPS
        case _:
            return 0.0


def _shortened(words: Sequence[str], others: Sequence[str]) -> float:
    """`alterskl` for `altersklasse`: the beginning of every word."""
    if len(words) != len(others):
        return 0.0
    pairs = list(zip(words, others, strict=True))
    if all(b.startswith(a) and (len(a) >= _SHORTEST_PART or a == b) for a, b in pairs):
        return _SHORTENED
    return 0.0


def _within(one: str, other: str) -> float:
    """`heimatverein` for `verein`: a compound."""
    compound = len(other) >= _SHORTEST_WITHIN and (one.endswith(other) or one.startswith(other))
    return _WITHIN if compound else 0.0


class Lookalikes:
    """Finds the texts that look most like another.

    Args:
        forms: Normalised texts; one that is too long is compared by its beginning.
        with_more: How likely a text means a form that it holds beside other words.
    """

    def __init__(self, forms: Iterable[str], with_more: float = _WITH_MORE) -> None:
        self._with_more = with_more
        self._forms = [form[:COMPARED_CHARACTERS] for form in forms]
        self._bare_forms = [form.replace(" ", "") for form in self._forms]

    def most_alike(self, text: str, floor: float = SUGGESTED_FROM) -> list[tuple[int, float]]:
        """Places and scores of the forms that look most like a text, the likeliest first.

        Args:
            text: Normalised.
            floor: Smallest score.
        """
        text = text[:COMPARED_CHARACTERS]
        if not text:
            return []
        near = set(self._parts(text.replace(" ", "")))
        for scorer in (fuzz.ratio, fuzz.token_set_ratio):
            found = process.extract(
                text, self._forms, scorer=scorer, limit=_COMPARED, score_cutoff=_NEAR
            )
            near.update(place for _, _, place in found)
        scored = (
            (place, alike(text, self._forms[place], self._with_more)) for place in sorted(near)
        )
        # Equals stay in their order, so the answer is the same whenever it is asked.
        return sorted(
            (each for each in scored if each[1] >= floor), key=lambda each: (-each[1], each[0])
        )

    def _parts(self, text: str) -> Iterator[int]:
        """Places of the forms that begin with a text, or that it begins or ends with."""
        if len(text) >= _SHORTEST_PART:
            for place, form in enumerate(self._bare_forms):
                if form.startswith(text) or (
                    len(form) >= _SHORTEST_WITHIN and (text.endswith(form) or text.startswith(form))
                ):
                    yield place
