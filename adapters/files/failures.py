"""What is said when a process that reads a file ends without a whole answer."""

import signal
from collections.abc import Generator
from contextlib import contextmanager

from pydantic import BaseModel, ConfigDict

from adapters.files import limits
from adapters.files.faults import NO_MEMORY, Fault, FaultKind, is_of_disk
from adapters.ports.errors import (
    PortError,
    ProcessLost,
    ReaderFailed,
    Unavailable,
    UnreadableDocument,
)
from workflows.shared.dependencies import Dependency


class Bounds(BaseModel):
    """What reading one file may cost."""

    model_config = ConfigDict(frozen=True)

    memory_bytes: int = limits.READER_MEMORY_BYTES
    """Address space."""
    cpu_seconds: int = limits.READER_CPU_SECONDS
    """Processor time."""
    seconds: int = limits.READER_SECONDS
    """Wall-clock time."""
    file_bytes: int = limits.READER_FILE_BYTES
    """The largest file that is written."""

    def with_memory(self, memory_bytes: int | None) -> "Bounds":
        """The same with another address space; None: the same."""
        if memory_bytes is None:
            return self
        return self.model_copy(update={"memory_bytes": memory_bytes})


class Wording(BaseModel):
    """How failures speak of what is read."""

    model_config = ConfigDict(frozen=True)

    verb: str = "reading"
    noun: str = "document"
    when_slow: str = "split it"
    """What to do."""
    when_damaged: str = "save it again and send the new file"
    memory_setting: str | None = None
    """Names the setting that bounds memory."""

    @property
    def work(self) -> str:
        """What the process does."""
        return f"{self.verb} the {self.noun}"

    def too_slow(self, bounds: Bounds) -> UnreadableDocument:
        """Return the failure of a process that took too long."""
        return UnreadableDocument(
            f"{self.work} takes more than {bounds.cpu_seconds:,} s of processor time, or"
            f" {bounds.seconds:,} s in all; {self.when_slow}"
        )

    def failure(self, code: int, fault: bytes, bounds: Bounds) -> PortError:
        """Return the failure of a process.

        Args:
            code: It ended with this.
            fault: An exception has ended it, and this is the `Fault` in JSON that it sent.
            bounds: What it may have used.
        """
        if code in (-signal.SIGXCPU, -signal.SIGALRM):
            return self.too_slow(bounds)
        if code == -signal.SIGKILL:
            return ProcessLost(f"the machine ended the process {self.work}; try again")
        if code == NO_MEMORY:
            setting = f" ({self.memory_setting})" if self.memory_setting else ""
            return UnreadableDocument(
                f"{self.work} needs more than {bounds.memory_bytes // limits.MB:,} MB of memory"
                f"{setting}; {self.when_slow}"
            )
        if code < 0:
            name = signal.Signals(-code).name
            how = f"the reader crashed with signal {-code} ({name})"
            return UnreadableDocument(f"{self.work} failed: {how}; {self.when_damaged}")
        try:
            return self._of(Fault.parsed(fault))
        except ValueError:
            # A file may have taken the process over.
            how = f"the reader ended with code {code} and without an answer"
            return UnreadableDocument(f"{self.work} failed: {how}; {self.when_damaged}")

    def damaged(self, fault: Fault) -> UnreadableDocument:
        """Return the failure of a file that is damaged, as an exception shows."""
        return UnreadableDocument(
            f"the {self.noun} is damaged or cut off ({fault}); {self.when_damaged}"
        )

    def _of(self, fault: Fault) -> PortError:
        match fault.kind:
            case FaultKind.DAMAGE:
                return self.damaged(fault)
            case FaultKind.TOO_LARGE:
                return UnreadableDocument(
                    f"{self.work} failed: it unpacks to a larger file than docflow writes"
                    f" ({fault}); {self.when_slow}"
                )
            case FaultKind.DISK_FULL:
                return Unavailable("the scratch disk is full", Dependency.SCRATCH_DISK)
            case FaultKind.DISK:
                return Unavailable(f"{self.work} failed: the disk of this machine failed ({fault})")
            case FaultKind.READER:
                return ReaderFailed(
                    f"{self.work} failed: the reader met an unexpected {fault}; this is a fault of"
                    f" the reader, and the {self.noun} may be sound: report it, with the file"
                )


@contextmanager
def damage(what: str, *errors: type[Exception]) -> Generator[None]:
    """Call a library that raises some errors if a file is damaged.

    Args:
        what: What people call the file.
        errors: Those that the library is known to raise then.

    Raises:
        UnreadableDocument: It has raised one of them, and not because of our disk.
    """
    try:
        yield
    except errors as error:
        if is_of_disk(error):
            raise
        raise Wording(noun=what).damaged(Fault.of(error)) from error
