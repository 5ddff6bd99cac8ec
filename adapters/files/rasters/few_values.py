"""The values of a band, as long as they are whole and few: it may hold classes."""

from typing import Any, Final

import numpy as np

from contracts.jobs.rasters import FEW_VALUES

_EXACT: Final = 1 << 53
_STRIDE: Final = 97
"""A look at some of the pixels tells nearly always that there are many values."""


class FewValues:
    """Collects the values of one band.

    Args:
        nodata: The value that says nothing.
    """

    def __init__(self, nodata: float | None) -> None:
        self._nodata = nodata
        self._found: set[float] | None = set()

    def add(self, pixels: Any) -> None:
        """Take more pixels in."""
        for part in (pixels.ravel()[::_STRIDE], pixels):
            if self._found is not None:
                self._found = self._joined(self._found, part)

    @property
    def values(self) -> tuple[int, ...]:
        """All of them, in order; empty: they are many, or not whole, or there is none."""
        return tuple(sorted(int(value) for value in self._found or ()))

    def _joined(self, found: set[float], pixels: Any) -> set[float] | None:
        if pixels.dtype.kind not in "iuf":
            return None
        new = np.unique(pixels)
        if self._nodata is not None:
            new = new[new != self._nodata]
        if new.dtype.kind == "f":
            new = new[np.isfinite(new)]
        is_few = len(new) <= FEW_VALUES and not (new % 1).any()
        both = found | set(map(float, new)) if is_few else found
        is_exact = all(abs(value) <= _EXACT for value in both)
        return both if is_few and is_exact and len(both) <= FEW_VALUES else None
