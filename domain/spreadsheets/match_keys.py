"""What makes two headers, or two values, the same thing to match and to remember."""

import re
from typing import Final

from domain.spreadsheets.fields import squash
from domain.tabular.fields import normalise

_LETTER_THEN_DIGIT: Final = re.compile(r"(?<=[^\W\d]) (?=\d)")
_SIGNS: Final = re.compile(
    r"[+<>\u2264\u2265#]"
    # A minus before a number, or at the end, where other signs may surround it.
    r"|(?<!\w)[-\u2212](?=\d)"
    r"|(?<=[\w+<>\u2264\u2265#\u2212-])[-\u2212](?=[+<>\u2264\u2265#\u2212-]*\)?$)"
)


def header_key(header: str) -> str:
    """What makes two headers the same: letters and digits; the signs of one that has neither.

    The key of a key is the key itself.
    """
    return squash(header) or _signs_only(header)


def value_key(text: str) -> str:
    """What makes two values the same: case, accents, spacing and punctuation do not count.

    Signs do: `A+` and `A-` are two blood groups. `U 18` and `U18` are one age group. The key of
    a key is the key itself.
    """
    bare = text.strip()
    if bare.isalpha() and bare.isascii():
        return bare.casefold()
    plain = _LETTER_THEN_DIGIT.sub("", normalise(bare))
    return plain + "".join(_SIGNS.findall(bare)) if plain else _signs_only(bare)


def search_key(text: str) -> str:
    """What a part of a value is looked for in: words without case, accents and punctuation."""
    return normalise(text) or _signs_only(text)


def _signs_only(text: str) -> str:
    return " ".join(text.split()).casefold()
