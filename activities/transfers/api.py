"""How an action of your own is written, and what it is given.

    class CountSettings(Contract):
        at_most: int

    class CountFiles(FileAction[CountSettings]):
        settings = CountSettings

        async def run(self, context: ActionContext[CountSettings]) -> Sequence[StagedFile]:
            if len(context.files) > context.settings.at_most:
                raise InvalidDocument(f"{len(context.files)} files came")
            return context.files

An entry point of the group `docflow.actions` names the class; a job names the entry point:
`{"Action": "Custom", "Name": "count_files", "Settings": {"at_most": 1}}`.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from pydantic import ValidationError

from adapters.installed import Installed, installed
from workflows.shared.contracts import Contract, problem_text
from workflows.shared.errors import RuleViolation
from workflows.transfers.events import FileNotice
from workflows.transfers.runs import StagedFile
from workflows.transfers.settings import Action, Custom

if TYPE_CHECKING:
    from activities.transfers.endpoints import StepFiles

GROUP: Final = "docflow.actions"
"""Entry points that name an action."""
_BLOCK: Final = 1 << 18

S = TypeVar("S", bound=Contract)


@dataclass
class ActionContext(Generic[S]):
    """What one call of an action is given."""

    settings: S
    """As the job has them, checked."""
    event: FileNotice
    """The event that the transfer is for."""
    transfer_id: str
    """The same for every attempt: what the action does elsewhere, it does under this name."""
    files: Sequence[StagedFile]
    """Files of the run, in the order in which they were read."""
    folder: Path
    """A folder of the call's own, removed afterwards."""
    step: "StepFiles" = field(repr=False)
    """Of docflow's own: reads and stages files."""
    remarks: list[str] = field(default_factory=list[str])
    """What people should know; the receipt has them."""
    _made: int = 0

    def read(self, file: StagedFile) -> AsyncIterator[bytes]:
        """Read a file piece by piece: it may be larger than the memory."""
        return self.step.staging.read(file.blob)

    async def download(self, file: StagedFile) -> Path:
        """Write a file to the folder of the call.

        Raises:
            Unavailable: There is no room for it.
        """
        from activities.transfers.endpoints import staged_path

        return await staged_path(self.step.staging, file, self.folder)

    async def add(self, name: str, content: Path | AsyncIterator[bytes]) -> StagedFile:
        """Stage a file that the action has made; return it from `run` to hand it on.

        Args:
            name: Under which it will be written.
            content: A file in the folder of the call, or its bytes.
        """
        pieces = _pieces(content) if isinstance(content, Path) else content
        blob = await self.step.stage(self._made, pieces)
        self._made += 1
        return StagedFile(name=name, blob=blob)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as source:
        while piece := source.read(_BLOCK):
            yield piece


class FileAction(ABC, Generic[S]):
    """Base of actions."""

    settings: type[S]
    """What a job may set; a name that it does not know is refused."""

    @abstractmethod
    async def run(self, context: ActionContext[S]) -> Sequence[StagedFile]:
        """Carry out the action; it may run twice.

        Returns:
            The files for the next action.

        Raises:
            InvalidDocument, RuleViolation: No retry helps; the run is parked.
            Unavailable, Throttled: Something does not answer; docflow tries again.
        """


@dataclass(frozen=True)
class OwnActions:
    """The actions that packages have brought, by name."""

    actions: Mapping[str, FileAction[Any]]
    problems: Sequence[str] = ()

    def of(self, custom: Custom) -> tuple[FileAction[Any], Contract]:
        """The code of an action, and its settings.

        Raises:
            RuleViolation: No package brings it, or the settings do not fit.
        """
        found = self.actions.get(custom.name)
        if found is None:
            known = ", ".join(sorted(self.actions)) or "none"
            text = (
                f"this worker has no action {custom.name!r}; installed are: {known}. "
                "Install its package where the worker runs, then retry"
            )
            raise RuleViolation("; ".join((text, *self.problems)))
        try:
            return found, found.settings.model_validate(custom.settings, extra="forbid")
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, each['loc']))}: {problem_text(each)}"
                for each in error.errors(include_url=False, include_input=False)
            )
            raise RuleViolation(f"the settings of {custom.name!r} are wrong: {problems}") from error

    def check(self, actions: Iterable[Action]) -> None:
        """See that all own actions of a job can run.

        Raises:
            RuleViolation: One cannot.
        """
        for each in actions:
            if isinstance(each, Custom):
                self.of(each)


@cache
def installed_actions() -> OwnActions:
    """Those of installed packages."""

    def brought(point: EntryPoint) -> list[tuple[str, FileAction[Any]]]:
        found = point.load()
        if not (isinstance(found, type) and issubclass(found, FileAction)):
            raise TypeError(f"{point.value} is no class that derives from FileAction")
        if not hasattr(cast(Any, found), "settings"):
            raise TypeError(f"{point.value} has no `settings`")
        return [(point.name, found())]

    every: Installed[FileAction[Any]] = installed(GROUP, brought)
    return OwnActions(every.found, every.problems)
