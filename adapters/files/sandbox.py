"""Processes of their own for libraries that a hostile file can crash, hang or swell.

What crosses the pipe are frames: the length as 4 bytes, little endian, then that many bytes.
"""

import contextlib
import os
import resource
import signal
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

_LENGTH = struct.Struct("<L")
ROOT = Path(__file__).parents[2]


class FrameTooLong(Exception):
    """A frame is announced that holds more than it may."""


def start(
    module: str,
    *arguments: str,
    talks: bool = False,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Run one of our modules as a process that sees nothing of this one but its pipes.

    Args:
        module: Full name.
        arguments: Of its command line.
        talks: It is written to as well, and may have children: it leads a group of its own, so
            that `stop` ends those too.
        environment: Variables that it gets beyond the search path.
    """
    return subprocess.Popen(  # noqa: S603 - our own module, arguments are not parsed by a shell
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env={"PATH": os.defpath, "RUST_BACKTRACE": "0", **(environment or {})},
        start_new_session=talks,
    )


def stop(child: subprocess.Popen[bytes]) -> None:
    """End a process, whatever it is doing; one that has ended already is not an error."""
    if child.poll() is None:
        # Not waited for yet, so its number cannot be another's.
        if child.stdin is None:
            child.kill()
        else:
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            # What could not be sent any more would be sent now.
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def limit(memory: int, cpu_seconds: int, seconds: int, file: int) -> None:
    """Restrict this process for good, and leave no core dumps.

    Args:
        memory: Address space in bytes.
        cpu_seconds: Processor time.
        seconds: Wall-clock time.
        file: Bytes of the largest file that it writes.
    """
    signal.alarm(seconds)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    # SIGXCPU comes at the first of these limits, SIGKILL at the second.
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Python ignores SIGXFSZ: writing more is an error, EFBIG.
    resource.setrlimit(resource.RLIMIT_FSIZE, (file, file))


def write_frame(pipe: IO[bytes], body: bytes) -> None:
    """Send a frame.

    Raises:
        BrokenPipeError: The reader has closed the pipe.
    """
    pipe.write(_LENGTH.pack(len(body)) + body)
    pipe.flush()


def read_frame(pipe: IO[bytes], most: int) -> bytes | None:
    """The next frame; None at the end, also when it comes in the middle of a frame.

    Raises:
        FrameTooLong: It holds more than `most` bytes.
    """
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > most:
        raise FrameTooLong
    body = pipe.read(length)
    return body if len(body) == length else None
