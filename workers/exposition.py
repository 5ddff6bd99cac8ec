"""Metrics of several processes as one page, in the text format of Prometheus.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass
class _Family:
    """One metric of all processes: a page may show it once."""

    descriptions: dict[str, str] = field(default_factory=dict[str, str])
    """HELP and TYPE, each the line of the process that is first."""
    samples: list[str] = field(default_factory=list[str])


def merged(pages: Mapping[str, str]) -> str:
    """One page with every sample of several, each with a label `process`.

    Args:
        pages: By the value of the label.
    """
    families: dict[str, _Family] = {}
    for process, page in pages.items():
        _read(page, f'process="{process}"', families)
    return "".join(f"{line}\n" for family in families.values() for line in _lines(family))


def _read(page: str, label: str, families: dict[str, _Family]) -> None:
    family = families.setdefault("", _Family())
    for line in page.splitlines():
        words = line.split(maxsplit=3)
        if line.startswith("#"):
            if len(words) > 2 and words[1] in ("HELP", "TYPE"):
                family = families.setdefault(words[2], _Family())
                family.descriptions.setdefault(words[1], line)
        elif words:
            family.samples.append(_labelled(line, label))


def _labelled(sample: str, label: str) -> str:
    name, brace, labels = sample.partition("{")
    if not brace:
        name, _, value = sample.partition(" ")
        return f"{name}{{{label}}} {value}"
    comma = "" if labels.startswith("}") else ","
    return f"{name}{{{label}{comma}{labels}"


def _lines(family: _Family) -> Iterator[str]:
    yield from family.descriptions.values()
    yield from family.samples
