"""Figures as markdown that can be pasted into a page."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median


@dataclass
class Table:
    """A titled markdown table with notes below it."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list[Sequence[str]])
    notes: list[str] = field(default_factory=list[str])

    def add(self, *cells: str) -> None:
        """Append a row."""
        self.rows.append(cells)

    def markdown(self) -> str:
        """The table; the first column is text, the others are figures."""
        lines = [f"### {self.title}", ""]
        lines.append(f"| {' | '.join(self.columns)} |")
        lines.append(f"|---|{'---:|' * (len(self.columns) - 1)}")
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join([*lines, ""])


def at_most(value: float, target: float, unit: str = "") -> str:
    """A figure beside the target that it must not pass."""
    return f"{_figure(value)}{unit}, target at most {_figure(target)}{unit}: " + (
        "met" if value <= target else "**not met**"
    )


def at_least(value: float, target: float, unit: str = "") -> str:
    """A figure beside the target that it must reach."""
    return f"{_figure(value)}{unit}, target at least {_figure(target)}{unit}: " + (
        "met" if value >= target else "**not met**"
    )


def middle(values: Sequence[float]) -> float:
    """The median, which one disturbed run does not move."""
    return median(values)


def spread(values: Sequence[float], digits: int = 0) -> str:
    """The median with the extremes that it lies between, where there are several values."""
    text = f"{median(values):.{digits}f}"
    if len(values) == 1:
        return text
    return f"{text} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` (0 to 1) of all values do not pass."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2f}"
