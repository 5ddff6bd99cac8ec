"""Files with a small file of the same name beside each: a signature, or a checksum."""

from collections.abc import Sequence

from contracts.transfers import StagedFile
from domain.errors import InvalidDocument


def pairs_of(
    files: Sequence[StagedFile], suffixes: Sequence[str], what: str
) -> Sequence[tuple[StagedFile, StagedFile]]:
    """Each file with the one beside it, in order.

    Args:
        files: All of them.
        suffixes: Of those beside.
        what: They are called so.

    Raises:
        InvalidDocument: One has none, or one belongs to none.
    """
    named = {file.name: file for file in files}
    found: dict[str, StagedFile] = {}
    beside: set[str] = set()
    for file in files:
        owner = next((o for o in _owners(file.name, suffixes) if o in named), None)
        if owner is not None:
            if owner in found:
                raise InvalidDocument(f"{owner!r} has more than one {what} beside it")
            found[owner] = file
            beside.add(file.name)
        elif any(_owners(file.name, suffixes)):
            raise InvalidDocument(f"the {what} {file.name!r} belongs to no file beside it")
    for file in files:
        if file.name not in beside and file.name not in found:
            raise InvalidDocument(f"{file.name!r} has no {what} beside it ({', '.join(suffixes)})")
    return [(file, found[file.name]) for file in files if file.name not in beside]


def alone(files: Sequence[StagedFile], suffixes: Sequence[str]) -> Sequence[StagedFile]:
    """Files that have none beside them and belong to none: a signature may be within."""
    names = {file.name for file in files}
    owners = {file.name: set(_owners(file.name, suffixes)) & names for file in files}
    paired = {owner for each in owners.values() for owner in each}
    return [file for file in files if not owners[file.name] and file.name not in paired]


def _owners(name: str, suffixes: Sequence[str]) -> Sequence[str]:
    lower = name.lower()
    return [name[: -len(suffix)] for suffix in suffixes if lower.endswith(suffix.lower())]
