"""A reading process that does whatever its order says, as a document that took it over would."""

import errno
import lzma
import os
import socket
import struct
import zlib
from pathlib import Path

from adapters.files import forks, gdal


class Panic(BaseException):
    """As native libraries end: it is no `Exception`."""


_EXCEPTIONS = {
    "key": KeyError("band"),
    "panic": Panic("index out of bounds in /usr/lib/x"),
    "denied": PermissionError(errno.EACCES, "Permission denied"),
    "lzma": lzma.LZMAError("Corrupt input data"),
    "struct": struct.error("unpack requires a buffer of 4 bytes"),
    "zlib": zlib.error("invalid distance"),
    "seek": OSError(errno.EINVAL, "Invalid argument"),
    "full": OSError(errno.ENOSPC, "No space left on device"),
    "quota": OSError(errno.EDQUOT, "Disk quota exceeded"),
    "mapping": OSError(errno.ENOMEM, "Cannot allocate memory"),
    "disk": OSError(errno.EIO, "Input/output error"),
    "large": OSError(errno.EFBIG, "File too large"),
    "memory": MemoryError(),
}


def _handle(body: str, send: forks.Send) -> None:
    verb, _, argument = body.partition(" ")
    match verb:
        case "echo":
            for piece in argument.split():
                send(piece.encode())
        case "read":
            send(_tried(lambda: Path(argument).read_text()))
        case "write":
            send(_tried(lambda: Path(argument).write_text("x")))
        case "delete":
            send(_tried(lambda: Path(argument).unlink()))
        case "connect":
            send(_tried(lambda: socket.create_connection(("127.0.0.1", int(argument)), 1)))
        case "swell":
            send(_tried(lambda: len(bytes(int(argument)))))
        case "fill":
            send(_tried(lambda: Path("filled").write_bytes(bytes(int(argument)))))
        case "spin":
            while True:
                pass
        case "where":
            send(os.getcwd().encode())
        case "pid":
            send(str(os.getpid()).encode())
            while True:
                pass
        case "abort":
            os.abort()
        case "exit":
            os._exit(3)
        case "lie":
            send(bytes(65 << 20))
        case "raise":
            raise _EXCEPTIONS[argument]
        case "hardened":
            gdal.require()
        case _:
            raise AssertionError(verb)


def _tried(call: object) -> bytes:
    assert callable(call)
    try:
        return f"done {call()}".encode()
    except (OSError, MemoryError) as error:
        return type(error).__name__.encode()


if __name__ == "__main__":
    forks.serve(_handle)
