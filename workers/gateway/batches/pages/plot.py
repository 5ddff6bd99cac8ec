"""The depths of a batch's queues as lines of an SVG picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from contracts.batches import PolledDepth

WIDTH: Final = 600
HEIGHT: Final = 160
_LEFT: Final = 56
_EDGE: Final = 12


@dataclass(frozen=True, slots=True)
class Line:
    """One number over time."""

    name: str
    points: str
    """As SVG reads the points of a `polyline`."""
    last: int
    end: tuple[float, float]
    """Where its newest value is."""


@dataclass(frozen=True, slots=True)
class DepthPlot:
    """Numbers of messages and loads over the looks that a run has kept."""

    lines: Sequence[Line]
    most: int
    """The number at the upper edge; 0 is at the lower one."""
    size: tuple[int, int] = (WIDTH, HEIGHT)
    frame: tuple[int, int, int, int] = (_LEFT, _EDGE, WIDTH - _EDGE, HEIGHT - _EDGE)
    """Left, upper, right and lower edge of what is drawn, in units of the picture."""


def depth_plot(depths: Sequence[PolledDepth]) -> DepthPlot | None:
    """The picture of some looks; None: the queues were not looked at yet.

    Args:
        depths: In the order of time.
    """
    if not depths:
        return None
    numbers = {
        "messages": [each.queue.total for each in depths],
        "dead letters": [each.dead_letters.total for each in depths],
        "open loads": [each.loads for each in depths],
    }
    most = max(1, *(value for values in numbers.values() for value in values))
    first, last = depths[0].at, depths[-1].at
    seconds = (last - first).total_seconds()

    def place(depth: PolledDepth, value: int) -> tuple[float, float]:
        # A single look is drawn at the right, where the newest one always is.
        share = (depth.at - first).total_seconds() / seconds if seconds > 0 else 1.0
        x = _LEFT + share * (WIDTH - _EDGE - _LEFT)
        return round(x, 1), round(HEIGHT - _EDGE - value / most * (HEIGHT - 2 * _EDGE), 1)

    lines: list[Line] = []
    for name, values in numbers.items():
        places = [place(depth, value) for depth, value in zip(depths, values, strict=True)]
        points = " ".join(f"{x},{y}" for x, y in places)
        lines.append(Line(name, points, values[-1], places[-1]))
    return DepthPlot(lines, most)
