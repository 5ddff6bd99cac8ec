"""The process that reads documents: `python -m adapters.files.texts.child`.

An order is a `ReadRequest`; its answer is one piece, an `Answer`.
"""

from adapters.files import encodings, forks
from adapters.files.texts.findings import NICENESS, ReadRequest
from adapters.files.texts.reader import handle_request


def _handle(body: str, send: forks.Send) -> None:
    order = ReadRequest.model_validate_json(body)
    send(handle_request(order).model_dump_json().encode())


if __name__ == "__main__":
    encodings.load()
    forks.serve(_handle, niceness=NICENESS)
