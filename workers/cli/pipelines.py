"""The option `--pipeline`."""

from collections.abc import Sequence
from typing import TypeVar

from workers.cli.errors import UsageError
from workers.pipelines.base import RunGroup

Group = TypeVar("Group", bound=RunGroup)


def by_name(name: str | None, groups: Sequence[Group]) -> Sequence[Group]:
    """The pipelines, or other groups of runs, that an option means.

    Args:
        name: As it was written; None: all of them.
        groups: Those that there are.

    Raises:
        UsageError: There is none of that name.
    """
    if name is None:
        return groups
    known = {each.name: each for each in groups}
    if name not in known:
        raise UsageError(f"--pipeline {name}: there are {', '.join(known)}")
    return (known[name],)
