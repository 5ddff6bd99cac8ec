"""What the alert rules and the dashboard ask of Prometheus."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "deploy" / "observe"
_METRIC = re.compile(r"\b((?:docflow|temporal)_\w+)(?:\{([^}]*)\})?")
_SERIES = re.compile(r"^(\w+)(?:\{(.*)\})? ", re.MULTILINE)
_LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")


def rules() -> Sequence[Mapping[str, Any]]:
    """The alert rules."""
    [group] = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
    return group["rules"]


def queries() -> Iterator[tuple[str, str]]:
    """Each query, with the text that shows its labels."""
    for rule in rules():
        yield rule["expr"], rule["annotations"]["summary"]
    for panel in json.loads((FOLDER / "dashboard.json").read_text())["panels"]:
        for target in panel["targets"]:
            yield target["expr"], target["legendFormat"]


def asked(query: str) -> Mapping[str, set[str]]:
    """The metrics of a query, with the labels that it uses of each."""
    grouped = {
        name.strip() for names in re.findall(r"by \(([^)]*)\)", query) for name in names.split(",")
    }
    return {name: grouped | set(_LABEL.findall(chosen)) for name, chosen in _METRIC.findall(query)}


def exposed(pages: Sequence[str]) -> Mapping[str, set[str]]:
    """The metrics of some processes, with their labels."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for page in pages:
        for name, labels in _SERIES.findall(page):
            found[name] |= set(_LABEL.findall(labels))
    return found
