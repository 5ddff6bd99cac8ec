"""The process that reads Office files: `python -m adapters.files.texts.office_child`.

It has a library loaded that takes a moment to load and some memory, so that others do without it.
"""

from adapters.files import encodings, forks
from adapters.files.texts import office
from adapters.files.texts.findings import NICENESS, ReadRequest
from adapters.files.texts.reader import Library, handle_request

_LIBRARY = Library(office.read_office, office.read_message)


def _handle(body: str, send: forks.Send) -> None:
    order = ReadRequest.model_validate_json(body)
    send(handle_request(order, _LIBRARY).model_dump_json().encode())


if __name__ == "__main__":
    encodings.load()
    forks.serve(_handle, niceness=NICENESS)
