"""Files inside Office packages, and pictures, whose words are not read."""

from typing import Final

from adapters.files import limits
from adapters.files.package import Package
from adapters.files.texts.findings import Findings
from adapters.files.texts.kinds import NO_OCR
from adapters.ports import UnreadableDocument

_FILES: Final = "/embeddings/"
_PICTURES: Final = ("/media/", "/pictures/")


def take_out_embedded(package: Package, into: Findings) -> None:
    """Keep the files that are embedded, and note how many pictures there are."""
    pictures = 0
    for name in package.names():
        folded = f"/{name.lower()}"
        if _FILES in folded:
            _keep(package, name, into)
        pictures += any(folder in folded for folder in _PICTURES)
    if pictures:
        into.note(f"pictures inside: {pictures:,}; {NO_OCR}")


def _keep(package: Package, name: str, into: Findings) -> None:
    try:
        into.keep(name.rpartition("/")[2], package.read(name, limits.ATTACHED_BYTES))
    except UnreadableDocument as error:
        into.note(f"an embedded file was not taken out: {error}")
