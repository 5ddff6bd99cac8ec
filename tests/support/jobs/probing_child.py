"""A reading process that does whatever its order says, as a document that took it over would."""

import os
import socket
from pathlib import Path

from adapters.files import forks, gdal


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
