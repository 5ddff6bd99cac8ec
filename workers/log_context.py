"""What a line of the log is about, bound once where work begins, and never at each call."""

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
_CONTEXT: ContextVar[Mapping[str, str]] = ContextVar("log_context")


@contextmanager
def bound(**facts: str | None) -> Generator[None]:
    """Add facts to every line that is logged inside the block, tasks of it included."""
    known = {name: value for name, value in facts.items() if value is not None}
    token = _CONTEXT.set({**current(), **known})
    try:
        yield
    finally:
        _CONTEXT.reset(token)


def bind(**facts: str | None) -> None:
    """Add facts to every line that is logged by the rest of this task, tasks of it included.

    For runs and activities, each of which has a task of its own: the SDK logs how they failed after
    them, and may close a run that leaves the cache outside of its task, where no block ends.
    """
    known = {name: value for name, value in facts.items() if value is not None}
    _CONTEXT.set({**current(), **known})


async def about(work: Callable[[], Awaitable[T]], **facts: str | None) -> T:
    """Do something; every line that is logged meanwhile has the facts.

    A task of it that is cancelled before it begins leaves no coroutine that was never awaited.
    """
    with bound(**facts):
        return await work()


def current() -> Mapping[str, str]:
    """The facts of the block that this is called in."""
    return _CONTEXT.get({})
