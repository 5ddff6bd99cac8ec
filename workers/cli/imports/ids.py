"""How people name an import: `project/task`."""

from typing import Protocol


class Named(Protocol):
    """A key, a message, a result or a status row of one import."""

    @property
    def project_id(self) -> str: ...

    @property
    def task_id(self) -> str: ...


def name_of(named: Named) -> str:
    """How people name this import."""
    return f"{named.project_id}/{named.task_id}"
