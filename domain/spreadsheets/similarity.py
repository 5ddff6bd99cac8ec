"""How much words look alike; good enough to suggest, never to decide."""

from collections.abc import Sequence
from typing import Final

from rapidfuzz import fuzz, process

LIKELY: Final = 0.6
"""Likeness from which something is worth showing."""
COMPARED_CHARACTERS: Final = 100
_SHORTEST_PART: Final = 3
_SHORTEST_WHOLE: Final = 4


class Lookalikes:
    """Finds the texts that look most like another.

    A short text may stand for the beginning of a long one, `cat` for `category`; but short forms
    are compared as a whole, or the code of a country would be found within every other word.

    Args:
        forms: Normalised texts; one that is too long is compared by its beginning.
    """

    def __init__(self, forms: Sequence[str]) -> None:
        self._long: list[str] = []
        self._long_places: list[int] = []
        self._short: list[str] = []
        self._short_places: list[int] = []
        for place, form in enumerate(forms):
            is_long = len(form) >= _SHORTEST_WHOLE
            (self._long if is_long else self._short).append(form[:COMPARED_CHARACTERS])
            (self._long_places if is_long else self._short_places).append(place)

    def most_alike(self, text: str, limit: int | None) -> list[tuple[int, float]]:
        """Places and scores, from `LIKELY` to 1, of the forms that look most like a text.

        Args:
            text: Normalised.
            limit: How many at most; None: all.
        """
        text = text[:COMPARED_CHARACTERS]
        if not text:
            return []
        scorer = fuzz.WRatio if len(text) >= _SHORTEST_PART else fuzz.ratio
        cutoff = 100 * LIKELY
        found = [
            (self._long_places[place], score)
            for _, score, place in process.extract(
                text, self._long, scorer=scorer, limit=limit, score_cutoff=cutoff
            )
        ]
        found += [
            (self._short_places[place], score)
            for _, score, place in process.extract(
                text, self._short, scorer=fuzz.ratio, limit=limit, score_cutoff=cutoff
            )
        ]
        # Equals stay in their order, so the answer is the same whenever it is asked.
        found.sort(key=lambda each: (-each[1], each[0]))
        return [(place, round(score / 100, 2)) for place, score in found[:limit]]
