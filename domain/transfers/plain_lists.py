"""Files that operators write in YAML: lists of mappings from words to plain values.

queues:
  - name: jobs        # a comment
    slots: 8

Values are passed on as they are written: YAML would make a number of seconds of `10:30`, and a
truth value of `no`. What type a value has, its contract says.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, cast

import yaml

from domain.errors import RuleViolation

Item = dict[str, str | None]
_NULL: Final = "tag:yaml.org,2002:null"


def read_lists(text: str, fields: Mapping[str, Collection[str]]) -> Mapping[str, Sequence[Item]]:
    """Read the lists of a file.

    Args:
        text: The file.
        fields: Names of lists, each with the fields that its items may have.

    Returns:
        Name to items, a value that is empty as None; a list that the file lacks is empty.

    Raises:
        RuleViolation: It cannot be read; the message says where.
    """
    found: dict[str, Sequence[Item]] = {}
    for key, node in _entries(_root(text, fields), fields, "list"):
        if isinstance(node, yaml.ScalarNode) and _value(node) is None:
            found[key] = []
            continue
        if not isinstance(node, yaml.SequenceNode):
            raise _at(node, f"{key} is not a list of `- name: ...`")
        found[key] = [
            {field: _value(value) for field, value in _entries(item, fields[key], "field")}
            for item in cast(Sequence[yaml.Node], node.value)
        ]
    return {key: found.get(key, []) for key in fields}


def _root(text: str, fields: Collection[str]) -> yaml.Node:
    try:
        root = cast(yaml.Node | None, yaml.compose(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark, problem = error.problem_mark, error.problem or error.context
        where = "" if mark is None else f"line {mark.line + 1}: "
        raise RuleViolation(f"{where}this is not YAML: {problem}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise RuleViolation(f"this is not YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(root, yaml.MappingNode):
        heads = " or ".join(f"`{each}:`" for each in fields)
        raise RuleViolation(f"the first line has to be {heads}")
    return root


def _entries(node: yaml.Node, known: Collection[str], what: str) -> Sequence[tuple[str, yaml.Node]]:
    """Keys and values of a mapping, each key once and known."""
    if not isinstance(node, yaml.MappingNode):
        raise _at(node, "this is no `name: value`")
    found: dict[str, yaml.Node] = {}
    for key_node, value in cast(Sequence[tuple[yaml.Node, yaml.Node]], node.value):
        key = _value(key_node)
        if key is None or key not in known:
            raise _at(key_node, f"{key} is not known; known are {', '.join(known)}")
        if key in found:
            raise _at(key_node, f"the {what} {key} stands there already")
        found[key] = value
    return tuple(found.items())


def _value(node: yaml.Node) -> str | None:
    if not isinstance(node, yaml.ScalarNode):
        raise _at(node, "only plain values are read here; put it into quotes")
    return None if node.tag == _NULL else str(node.value)


def _at(node: yaml.Node, problem: str) -> RuleViolation:
    return RuleViolation(f"line {node.start_mark.line + 1}: {problem}")
