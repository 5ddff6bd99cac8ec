"""ZIP archives: their files are documents of their own."""

from pathlib import Path

from adapters.files.package import open_package
from adapters.files.texts.findings import Findings
from adapters.ports import UnreadableDocument


def read_archive(path: Path, into: Findings) -> None:
    """Take out the files; their names are the text of the archive.

    Raises:
        UnreadableDocument: It is damaged, needs a password, or unpacks to far more than it holds.
    """
    with open_package(path, "archive") as package:
        for name, size, content in package.files():
            into.add_text(f"{name}\n")
            if into.is_late:
                into.note("not all of its files were taken out: time was over")
                break
            try:
                into.keep_pieces(name, content, size)
            except UnreadableDocument as error:
                into.note(f"a file was not taken out: {error}")
        if package.names_encoding:
            into.note(
                "the archive does not say in which encoding the names of its files are:"
                f" read as {package.names_encoding}"
            )
