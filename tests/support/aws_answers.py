"""Answers in AWS's place: what no emulator says, and every error at every call."""

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

EVENT = "before-call"
HERE = "answers-of-a-test"


class Answers:
    """Calls that a client made, and what it is told instead of being let through."""

    def __init__(self, alone: bool) -> None:
        self._alone = alone
        self.calls: list[str] = []
        """Operations in order, also those that were let through."""
        self.asked: list[dict[str, Any]] = []
        """Their parameters on the wire."""
        self._answers: dict[str, list[Any]] = defaultdict(list)

    def body(self) -> Any:
        """What the last call said, where the service speaks JSON."""
        return json.loads(self.asked[-1]["body"])

    def say(self, operation: str, **answer: Any) -> None:
        """Answer the next call of an operation that has no answer yet."""
        self._answers[operation].append((200, answer))

    def refuse(self, operation: str, code: str, status: int = 400, message: str = "no") -> None:
        """Let the next call fail, after the client's own attempts."""
        self._answers[operation].append((status, {"Error": {"Code": code, "Message": message}}))

    def lose(self, operation: str, error: Exception) -> None:
        """Let the next call get no answer."""
        self._answers[operation].append(error)

    def let_through(self, operation: str, times: int = 1) -> None:
        """Let AWS answer the next calls."""
        self._answers[operation] += [None] * times

    def __call__(self, model: Any, params: dict[str, Any], **_: Any) -> Any:
        self.calls.append(model.name)
        self.asked.append(params)
        if not self._answers[model.name]:
            assert not self._alone, f"no answer is scripted for {model.name}"
            return None
        answer = self._answers[model.name].pop(0)
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            return None
        status, said = answer
        metadata = {"HTTPStatusCode": status, "HTTPHeaders": {}}
        return SimpleNamespace(status_code=status), {**said, "ResponseMetadata": metadata}


@contextmanager
def answers(client: Any, *, alone: bool = False) -> Iterator[Answers]:
    """Stand between a client and its service.

    Args:
        client: Of any service.
        alone: There is no service: every call needs an answer.
    """
    standing = Answers(alone)
    client.meta.events.register(EVENT, standing, unique_id=HERE)
    try:
        yield standing
    finally:
        client.meta.events.unregister(EVENT, standing, unique_id=HERE)
