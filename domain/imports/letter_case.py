"""Codes of one document that differ from each other only in the case of letters."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

CODES: Final = 100_000
"""Codes that are compared, about 20 MB: more than lists have in which people type codes."""
_PAIRS: Final = 1_000


@dataclass
class LetterCases:
    """Finds pairs such as `E-1` and `e-1`: two codes, which one person may mean as one.

    Attributes:
        pairs: The spelling that came first, and another one; as many as are kept.
    """

    pairs: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    _waiting: list[Collection[str]] = field(default_factory=list[Collection[str]], repr=False)
    _first: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    _known: set[str] = field(default_factory=set[str], repr=False)
    _count: int = field(default=0, repr=False)

    def add(self, codes: Collection[str]) -> None:
        """Take the next codes; they may repeat."""
        if self._count >= CODES:
            self._waiting.clear()
            return
        self._count += len(codes)
        joined = "\n".join(codes)
        if not self._first and joined == joined.upper():
            # Codes in capitals alone differ in more than case.
            self._waiting.append(codes)
            return
        for each in (*self._waiting, codes):
            self._compare(each)
        self._waiting.clear()

    def _compare(self, codes: Collection[str]) -> None:
        for code in codes:
            first = self._first.setdefault(code.lower(), code)
            if first != code and code not in self._known and len(self.pairs) < _PAIRS:
                self._known.add(code)
                self.pairs.append((first, code))
