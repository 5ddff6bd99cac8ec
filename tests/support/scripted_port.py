"""Stands for any port."""

from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any


class ScriptedPort:
    """Gives the answers of a test, in order, the last one for ever; remembers what it was asked.

    An answer that is an exception is raised. A call without an answer returns None. Methods whose
    answer was given by `lists` are async iterators.
    """

    def __init__(self, **answers: Any) -> None:
        self.asked: list[tuple[Any, ...]] = []
        """Every call: name, then arguments."""
        self._answers: dict[str, list[Any]] = defaultdict(list)
        self._lists: dict[str, list[Any]] = {}
        for name, answer in answers.items():
            self.answer(name, answer)

    def answer(self, name: str, *answers: Any) -> None:
        """Set what a call answers from now on."""
        self._answers[name] = list(answers)

    def lists(self, name: str, *items: Any) -> None:
        """Set what a call iterates over from now on."""
        self._lists[name] = list(items)

    def made(self, name: str) -> list[tuple[Any, ...]]:
        """Arguments of every call of that name."""
        return [arguments for asked, *arguments in self.asked if asked == name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._iterate(name) if name in self._lists else self._call(name)

    def _call(self, name: str) -> Any:
        async def call(*arguments: Any) -> Any:
            self.asked.append((name, *arguments))
            answers = self._answers[name]
            answer = None if not answers else answers.pop(0) if len(answers) > 1 else answers[0]
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call

    def _iterate(self, name: str) -> Any:
        async def iterate(*arguments: Any) -> AsyncIterator[Any]:
            self.asked.append((name, *arguments))
            for item in self._lists[name]:
                yield item

        return iterate
