"""Files that operators write: lists of mappings from words to plain values, a part of YAML.

queues:
  - name: jobs        # a comment
    slots: 8
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from domain.errors import RuleViolation

Item = dict[str, Any]
_HEAD: Final = re.compile(r"(?P<head>[a-z_]+):")
_LINE: Final = re.compile(r"(?P<dash>- )?(?P<key>[a-z_]+):(?:\s+(?P<value>.*))?")
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def read_lists(text: str, fields: Mapping[str, Collection[str]]) -> Mapping[str, Sequence[Item]]:
    """Read the lists of a file.

    Args:
        text: The file.
        fields: Heads of lists, each with the fields that its items may have.

    Returns:
        Head to items; a list that the file lacks is empty.

    Raises:
        RuleViolation: It cannot be read; the message says where.
    """
    found: dict[str, list[Item]] = {}
    known: Collection[str] = ()
    items: list[Item] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = _plain(raw)
        if not line or line == "---":
            continue
        # Only the head of a list stands at the beginning of its line.
        head = None if raw[:1].isspace() else _HEAD.fullmatch(line)
        if head is not None and head["head"] in fields:
            name = head["head"]
            if name in found:
                raise RuleViolation(f"line {number}: there is a list {name} already")
            items, known = found.setdefault(name, []), fields[name]
            continue
        if not found:
            heads = " or ".join(f"`{each}:`" for each in fields)
            raise RuleViolation(f"the first line has to be {heads}")
        _add(items, line, number, known)
    if not found:
        heads = " or ".join(f"`{each}:`" for each in fields)
        raise RuleViolation(f"the first line has to be {heads}")
    return {head: found.get(head, []) for head in fields}


def _add(items: list[Item], line: str, number: int, known: Collection[str]) -> None:
    """Add what a line says to the last item, or begin the next one."""
    found = _LINE.fullmatch(line)
    if found is None or (found["dash"] is None and not items):
        raise RuleViolation(f"line {number} is no `- name: ...` and no `field: value`")
    if found["dash"] is not None:
        items.append({})
    key, item = found["key"], items[-1]
    if key in item:
        raise RuleViolation(f"line {number}: {key} stands there already")
    if key not in known:
        raise RuleViolation(f"line {number}: {key} is not known; known are {', '.join(known)}")
    item[key] = _value(found["value"] or "", number)


def _plain(line: str) -> str:
    """A line without its comment and the blanks at its ends."""
    text = line.strip()
    return "" if text.startswith("#") else re.sub(r"\s+#[^\"']*$", "", text)


def _value(text: str, number: int) -> str | float | None:
    if text in ("", "null", "~"):
        return None
    if text[0] == '"':
        try:
            return str(json.loads(text))
        except ValueError as error:
            raise RuleViolation(f"line {number}: the text in quotes cannot be read") from error
    if text[0] == "'":
        return text[1:].removesuffix("'").replace("''", "'")
    if text[0] in "[]{}&*!|>%@`":
        raise RuleViolation(f"line {number}: only plain values are read here; put it into quotes")
    return float(text) if _NUMBER.fullmatch(text) else text
