"""What people are told of a test of a partner."""

from collections.abc import Sequence
from typing import Final

from contracts.transfers import Partner, Rename, ServerProfile

_RENAMES: Final = {
    Rename.ATOMIC_REPLACE: "a file replaces another in one step: no reader sees a partial file",
    Rename.NON_ATOMIC: "a rename onto an existing name is refused: what is there is removed first",
    Rename.DIRECT: "it renames nothing: files are written under their own names and read back",
}


def said_of_probe(partner: Partner, profile: ServerProfile) -> Sequence[str]:
    """What was written, how files are written, and what failed."""
    sentences = [*_probed(profile), _written(partner, profile)]
    sentences += [f"it failed at {each}" for each in profile.failed]
    if profile.extensions:
        sentences.append(f"its extensions: {', '.join(profile.extensions)}")
    return sentences


def _probed(profile: ServerProfile) -> Sequence[str]:
    """What a test has written."""
    if not profile.probed_with:
        return ["nothing was written"]
    if profile.takes_at_close:
        return [f"written for the test, and taken by the server: {profile.probed_with[0]}"]
    removed = [path for path in profile.probed_with if path not in profile.left_behind]
    sentences = [f"written for the test, and removed: {', '.join(removed)}"] if removed else []
    if profile.left_behind:
        left = ", ".join(profile.left_behind)
        sentences.append(f"written for the test, and it could not be removed: {left}; remove it")
    return sentences


def _written(partner: Partner, profile: ServerProfile) -> str:
    """How files are written there."""
    if partner.write is not None:
        return f"files are written as its record says: {partner.write}"
    if profile.takes_at_close:
        return (
            "it takes a file as soon as it is closed: files are written under their own names, "
            "and none can be read back"
        )
    return _RENAMES[profile.rename]


def spoils_transfers(profile: ServerProfile) -> bool:
    """Whether a step failed that no transfer can do without; one without renames works."""
    return any(not each.startswith("rename:") for each in profile.failed)
