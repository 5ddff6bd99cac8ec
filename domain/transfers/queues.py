"""Queues: who carries out which jobs, how many at once, and how fast.

They are data, `config/queues.yaml`. The file is read as the part of YAML that it needs: one list of
mappings from words to plain values, and comments.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import Field, TypeAdapter, ValidationError

from contracts.base import Contract
from contracts.transfers import QueueName, queue_task_queue
from domain.errors import RuleViolation

_HEAD: Final = "queues:"
_LINE: Final = re.compile(r"(?P<dash>- )?(?P<key>[a-z_]+):(?:\s+(?P<value>.*))?")
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


class Queue(Contract):
    """One queue."""

    name: QueueName
    handler: str = Field(max_length=100)
    """What carried out its jobs in the system that docflow replaces."""
    description: str = Field(default="", max_length=500)
    slots: int = Field(default=4, ge=1, le=1_000)
    """Actions at once in one worker."""
    rate_per_second: float | None = Field(default=None, gt=0, le=100_000)
    """Actions that all workers together begin; None: as many as they can."""
    priority: int = Field(default=3, ge=1, le=5)
    """Of its jobs where they share something with those of others: 1 comes first."""

    @property
    def task_queue(self) -> str:
        """Of Temporal."""
        return queue_task_queue(self.name)


_QUEUES: Final[TypeAdapter[list[Queue]]] = TypeAdapter(list[Queue])


def read_queues(text: str) -> Mapping[str, Queue]:
    """Read the file.

    Returns:
        Name to queue, in the order of the file.

    Raises:
        RuleViolation: It cannot be read, or names a queue twice; the message says where.
    """
    try:
        found = _QUEUES.validate_python(list(_items(text)))
    except ValidationError as error:
        each = error.errors(include_url=False, include_input=False)[0]
        number, *field = each["loc"]
        where = ".".join(map(str, field)) or "it"
        raise RuleViolation(f"queue {int(number) + 1}: {where}: {each['msg']}") from error
    queues = {queue.name: queue for queue in found}
    if len(queues) < len(found):
        names = [queue.name for queue in found]
        twice = next(name for name in names if names.count(name) > 1)
        raise RuleViolation(f"there are two queues {twice}")
    if not queues:
        raise RuleViolation("there is no queue")
    return queues


def _items(text: str) -> Iterator[dict[str, Any]]:
    """The mappings of the list."""
    lines = [(number, _plain(line)) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line and line != "---"]
    if not lines or lines[0][1] != _HEAD:
        raise RuleViolation(f"the first line has to be `{_HEAD}`")
    item: dict[str, Any] | None = None
    for number, line in lines[1:]:
        found = _LINE.fullmatch(line)
        if found is None or (found["dash"] is None and item is None):
            raise RuleViolation(f"line {number} is no `- name: ...` and no `field: value`")
        if found["dash"] is not None:
            if item is not None:
                yield item
            item = {}
        assert item is not None
        if found["key"] in item:
            raise RuleViolation(f"line {number}: {found['key']} stands there already")
        if found["key"] not in Queue.model_fields:
            known = ", ".join(Queue.model_fields)
            raise RuleViolation(f"line {number}: {found['key']} is not known; known are {known}")
        item[found["key"]] = _value(found["value"] or "", number)
    if item is not None:
        yield item


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
        raise RuleViolation(f"line {number}: only plain values are read here")
    return float(text) if _NUMBER.fullmatch(text) else text
