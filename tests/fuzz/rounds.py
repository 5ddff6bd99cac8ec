"""Many damaged files of a kind, one after the other, and what came of them."""

import random
import re
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

from adapters.ports.errors import PortError, ReaderFailed, Unavailable
from adapters.ports.spatial import QuestionOpen
from tests.fuzz.mutations import Mutator
from tests.fuzz.readers import KINDS, Read, openpgp_files
from workflows.shared.errors import InvalidDocument, RuleViolation

HANG_SECONDS: Final = 30
KIND_NAMES: Final = (*KINDS, "openpgp")
_TYPED: Final = (PortError, InvalidDocument, RuleViolation, QuestionOpen)


_PANIC: Final = re.compile(r"unexpected \S+\.(PanicException|RustPanic) at ")


class Hang(BaseException):
    """A reader in this process has used all the processor time that a file may cost."""


@dataclass
class Outcome:
    """What came of the files of one kind."""

    read: int = 0
    refused: int = 0
    contained: list[str] = field(default_factory=list[str])
    """Crashes and panics of native libraries that harmed their own process alone."""
    faults: list[str] = field(default_factory=list[str])


async def fuzz(
    kind: str, times: int, seed: str, folder: Path, formats: Sequence[str] = (), first: int = 0
) -> AsyncGenerator[tuple[str, Outcome]]:
    """Have a reader read damaged files.

    Args:
        kind: One of `KIND_NAMES`.
        times: Files of each format.
        seed: The same one makes the same files.
        folder: Keeps the files that a reader failed at.
        formats: Only these.
        first: Number of the first file of each format.

    Yields:
        A format, and what came of its files.
    """
    async with AsyncExitStack() as stack:
        if kind == "openpgp":
            messages = await stack.enter_async_context(openpgp_files())
            all_seeds, reader = messages.seeds, messages.reader
        else:
            all_seeds, reader = KINDS[kind]
        read = await stack.enter_async_context(reader())
        for format, seeds in all_seeds.items():
            if formats and format not in formats:
                continue
            with _emptied() as own:
                contents = seeds(own)
            outcome = Outcome()
            for number, content in enumerate(contents):
                sound = Outcome()
                fault = await _tried(read, f"seed-{number}.{format}", content, sound)
                if not sound.read:
                    outcome.faults.append(f"seed {number} is not read as it is: {fault or sound}")
            for number in range(first, first + times):
                name = f"{kind}-{seed}-{number}.{format}"
                content = Mutator(random.Random(f"{seed}/{format}/{number}")).damaged(contents)
                fault = await _tried(read, f"{number}.{format}", content, outcome)
                if fault is not None:
                    (folder / name).write_bytes(content)
                    outcome.faults.append(f"{folder / name}: {fault}")
            yield format, outcome


async def _tried(read: Read, name: str, content: bytes, outcome: Outcome) -> str | None:
    """What a reader did that none may do; None: nothing."""
    started = time.monotonic()
    with _emptied() as own:
        path = own / name
        path.write_bytes(content)
        try:
            with _bounded():
                await read(path)
            outcome.read += 1
        except (ReaderFailed, Unavailable) as error:
            if not _PANIC.search(str(error)):
                return f"{type(error).__name__}: {error}"
            outcome.contained.append(f"{name}: {error}")
        except _TYPED as error:
            if "crashed with signal" in str(error):
                outcome.contained.append(f"{name}: {error}")
            else:
                outcome.refused += 1
        except (Exception, Hang) as error:
            place = error.__traceback__
            while place is not None and place.tb_next is not None:
                place = place.tb_next
            assert place is not None
            where = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}"
            return f"untyped {type(error).__name__} at {where}: {error}"
    took = time.monotonic() - started
    return f"it took {took:.0f} s" if took > HANG_SECONDS else None


@contextmanager
def _emptied() -> Generator[Path]:
    own = Path(tempfile.mkdtemp(prefix="docflow-fuzz-"))
    try:
        yield own
    finally:
        shutil.rmtree(own)


@contextmanager
def _bounded() -> Generator[None]:
    """Processor time of this process, which is no measure of how busy the machine is."""

    def end(number: int, frame: FrameType | None) -> None:
        raise Hang(f"more than {HANG_SECONDS} s of processor time")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
