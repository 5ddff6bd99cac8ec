"""The process that reads documents: `python -m adapters.files.texts.child`.

It loads the libraries once and then forks for each order, so that every document is read by a
process of its own: whatever one of them does to it is gone with it. Orders come as frames on
standard input, a `ReadOrder` each. For each one frame goes to standard output: the exit code of
its process as 4 bytes, little endian, signed; then its `Answer`, if it came to that.
"""

import os
import signal
import struct
import sys
from typing import Final

from adapters.files import encodings, sandbox
from adapters.files.texts.protocol import ANSWER_BYTES, ORDER_BYTES, ReadOrder
from adapters.files.texts.reader import answer_to

CODE: Final = struct.Struct("<l")


def main() -> None:
    """Serve until the pipe is closed."""
    encodings.load()
    while order := sandbox.read_frame(sys.stdin.buffer, ORDER_BYTES):
        code, answer = _in_a_fork(order)
        sandbox.write_frame(sys.stdout.buffer, CODE.pack(code) + answer)


def _in_a_fork(order: bytes) -> tuple[int, bytes]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _read(order, writing)
    os.close(writing)
    with open(reading, "rb") as pipe:
        answer = pipe.read(ANSWER_BYTES + 1)
    if len(answer) > ANSWER_BYTES:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return os.EX_SOFTWARE, b""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), answer


def _read(body: bytes, writing: int) -> None:
    """Answer one order and end the process."""
    code = os.EX_SOFTWARE
    try:
        # What a library prints must not look like an answer.
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        order = ReadOrder.model_validate_json(body)
        signal.alarm(order.bounds.seconds)
        sandbox.limit(order.bounds.memory_bytes, order.bounds.cpu_seconds)
        answer = answer_to(order).model_dump_json().encode()
        with open(writing, "wb") as pipe:
            pipe.write(answer)
        code = os.EX_OK
    finally:
        # Not by an exception: it would continue with the loop of the process that forked.
        os._exit(code)


if __name__ == "__main__":
    main()
