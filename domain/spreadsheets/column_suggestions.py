"""Which field a column probably means: by the words of its header, and by its values."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from contracts.spreadsheets import GROUNDS
from domain.spreadsheets.evidence import Evidence, evidence
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.similarity import POSSIBLE_FROM, SUGGESTED_FROM, Lookalikes
from domain.tabular.fields import ColumnKind, normalise

_ASIDES: Final = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\*")
_EITHER: Final = re.compile(r"[/|&]|\bor\b|\boder\b|\bu\.|\bund\b|\band\b", re.IGNORECASE)
_OWNERS: Final = frozenset(
    (
        *("athlete", "athletes", "child", "childs", "children", "home", "member", "members", "own"),
        *("parent", "parents", "participant", "participants", "person", "personal", "private"),
        *("runner", "runners", "eltern", "kind", "kindes", "kinder", "laufer", "laufers"),
        *("mitglied", "mitglieds", "privat", "teilnehmer", "teilnehmers"),
    )
)
"""Whose field it is, which means the same field."""
_TOGETHER: Final = 0.97
"""Every part of `City/Town` means the same field."""
_VALUES_ALONE: Final = 0.92
_MAILS_ALONE: Final = 0.97
_TELLING: Final = 0.3
_FITTING: Final = 0.6
"""What is left of the doubt where the values fit."""
_CONTRADICTED: Final = 0.5
"""Share of the values that a field can take below which the column does not mean it."""
_AHEAD: Final = 0.1
"""By how much the likeliest field is ahead; else none is suggested."""


class FieldSuggestion(NamedTuple):
    """A field that a column probably means."""

    field: str
    score: float
    """How likely, from 0 to 1."""
    why: str
    """For people."""


class ColumnSuggestions:
    """Suggests fields of an import type for columns.

    Args:
        fields: Fields of the import type, custom lists included.
    """

    def __init__(self, fields: Sequence[SheetField]) -> None:
        wordings = [(form, field.name) for field in fields for form in field.wordings]
        self._fields = fields
        self._names = [name for _, name in wordings]
        self._forms = [form for form, _ in wordings]
        self._lookalikes = Lookalikes(self._forms)

    def __call__(self, header: str, samples: Sequence[str]) -> Sequence[FieldSuggestion]:
        """The field that a column probably means; none where two are about as likely.

        Args:
            header: As written; "" for none.
            samples: Distinct values of the column, as a person sees them.
        """
        by_words = self._by_words(header)
        found: list[FieldSuggestion] = []
        for field in self._fields:
            score, form = by_words.get(field.name, (0.0, ""))
            observed = evidence(field, samples)
            likely = _weighed(field, score, observed)
            if likely >= POSSIBLE_FROM:
                found.append(FieldSuggestion(field.name, round(likely, 2), _why(form, observed)))
        found.sort(key=lambda each: -each.score)
        if len(found) > 1 and found[0].score - found[1].score < _AHEAD:
            return ()
        return [each for each in found if each.score >= SUGGESTED_FROM]

    def _by_words(self, header: str) -> Mapping[str, tuple[float, str]]:
        """Field to how likely the header means it, and the wording that it looks like."""
        best: dict[str, tuple[float, str]] = {}
        for text in _variants(header):
            for name, found in self._alike(text).items():
                if found > best.get(name, (0.0, "")):
                    best[name] = found
        split = map(normalise, _EITHER.split(_ASIDES.sub(" ", header)))
        parts = [part for part in split if part]
        if len(parts) > 1:
            each_part = [self._alike(part) for part in parts]
            for name in sorted(set(each_part[0]).intersection(*each_part[1:])):
                if all(found[name][0] >= SUGGESTED_FROM for found in each_part):
                    best[name] = (_TOGETHER, each_part[0][name][1])
        return best

    def _alike(self, text: str) -> Mapping[str, tuple[float, str]]:
        found: dict[str, tuple[float, str]] = {}
        for place, score in self._lookalikes.most_alike(text, POSSIBLE_FROM):
            found.setdefault(self._names[place], (score, self._forms[place]))
        return found


def _variants(header: str) -> Iterator[str]:
    """A header, without what stands in brackets, and without whose field it is."""
    whole, bare = normalise(header), normalise(_ASIDES.sub(" ", header))
    words = [word for word in bare.split() if word not in _OWNERS]
    yield from dict.fromkeys(text for text in (whole, bare, " ".join(words)) if text)


def _weighed(field: SheetField, score: float, observed: Evidence | None) -> float:
    """How likely a field is, by words and values together."""
    if observed is None:
        return score
    if observed.share < _CONTRADICTED:
        return 0.0
    if observed.telling and not score:
        return _MAILS_ALONE if field.kind is ColumnKind.MAIL else _VALUES_ALONE
    if observed.telling and score >= SUGGESTED_FROM:
        return 1 - (1 - score) * _TELLING
    # The phone number of a column that is called `Notfallkontakt Telefon` is another person's.
    return 1 - (1 - score) * _FITTING if score and observed.words else score


def _why(form: str, observed: Evidence | None) -> str:
    reasons = [f"the header looks like \u201c{form}\u201d"] if form else []
    if observed is not None and observed.words:
        reasons.append(observed.words)
    return "; ".join(reasons)[:GROUNDS]
