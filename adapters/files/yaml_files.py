"""YAML that people write: mappings, lists and plain values, each with its line.

Values are passed on as they are written: YAML would make a number of seconds of `10:30`, and a
truth value of `no`. What type a value has, its contract says. Aliases are refused: a few lines of
them can stand for gigabytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, cast

import yaml

from workflows.shared.errors import RuleViolation

Location = tuple[str | int, ...]
"""Keys and places that lead to a value, as pydantic's errors have them."""
_NULL: Final = "tag:yaml.org,2002:null"
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml reads ten times as fast; a wheel may come without it."""
_CURES: Final = MappingProxyType(
    {
        "mapping values": "put a text that holds `: ` into quotes",
        "alias": "put a text that begins with * into quotes",
        "anchor": "put a text that begins with & into quotes",
        "cannot start any token": "put a text that begins with @, % or ` into quotes",
    }
)
"""A part of what the library says to what helps."""


@dataclass(frozen=True, slots=True)
class YamlFile:
    """What a file holds.

    Attributes:
        value: Dictionaries, lists, texts and None.
        lines: Where each value stands, from 1; of an entry of a mapping, its key.
    """

    value: Any
    lines: Mapping[Location, int]

    def line_of(self, location: Sequence[Any]) -> int:
        """Where a value stands, or what holds it if it is not there."""
        for end in range(len(location), 0, -1):
            if (line := self.lines.get(tuple(location[:end]))) is not None:
                return line
        return self.lines.get((), 1)


def read_yaml(text: str) -> YamlFile:
    """Read a file.

    Raises:
        RuleViolation: It cannot be read; the message says where.
    """
    try:
        root = cast(yaml.Node | None, yaml.compose(text, Loader=_LOADER))
        lines: dict[Location, int] = {}
        value = None if root is None else _value(root, (), lines, set())
    except yaml.MarkedYAMLError as error:
        mark, problem = error.problem_mark, error.problem or error.context
        where = "" if mark is None else f"line {mark.line + 1}: "
        cures = (cure for said, cure in _CURES.items() if said in str(problem))
        cure = next(cures, "close every bracket and quote, and indent with blanks")
        raise RuleViolation(f"{where}this is not YAML: {problem}; {cure}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise RuleViolation(f"this is not YAML: {str(error).splitlines()[0]}") from error
    return YamlFile(value, lines)


def _value(node: yaml.Node, place: Location, lines: dict[Location, int], seen: set[int]) -> Any:
    line = node.start_mark.line + 1
    if id(node) in seen:
        raise RuleViolation(
            f"line {line}: an alias stands here; write the value out, or put a text that begins "
            "with * into quotes"
        )
    seen.add(id(node))
    lines.setdefault(place, line)
    if isinstance(node, yaml.ScalarNode):
        return None if node.tag == _NULL else str(node.value)
    if isinstance(node, yaml.SequenceNode):
        items = cast(Sequence[yaml.Node], node.value)
        return [_value(item, (*place, number), lines, seen) for number, item in enumerate(items)]
    found: dict[str, Any] = {}
    for key_node, value in cast(Sequence[tuple[yaml.Node, yaml.Node]], node.value):
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise RuleViolation(f"line {line}: this is no `name: value`")
        key = str(key_node.value)
        if key in found:
            raise RuleViolation(f"line {line}: {key} is there twice; remove one of them")
        lines[*place, key] = line
        found[key] = _value(value, (*place, key), lines, seen)
    return found
