"""What every recorded history holds, so that none is replaced or removed without a word.

Run as `python -m tests.replay.history_lock` to list histories that are not listed yet, as after a
merge. Nothing that is listed is ever changed by it.
"""

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path

HISTORIES = Path(__file__).parent / "histories"


def lock_of(folder: Path) -> Path:
    """The lock beside a folder of histories."""
    return folder.with_name(f"{folder.name}.lock.json")


def read_lock(folder: Path) -> Mapping[str, str]:
    """`Workflow/case` of each history that was recorded to its digest; empty without a lock."""
    lock = lock_of(folder)
    return json.loads(lock.read_text()) if lock.exists() else {}


def digests(folder: Path) -> Mapping[str, str]:
    """`Workflow/case` of each history that is there to its digest."""
    return {f"{path.parent.name}/{path.stem}": digest(path) for path in folder.glob("*/*.json")}


def digest(path: Path) -> str:
    """SHA-256 of the events of a history, however its JSON is indented and ordered."""
    content = json.dumps(json.loads(path.read_text()), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def differences(locked: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """What differs from the lock: a sentence for each history."""
    said = [f"{name} is not locked" for name in sorted(found.keys() - locked.keys())]
    said += [f"{name} was removed" for name in sorted(locked.keys() - found.keys())]
    return said + [
        f"{name} is another history than the one that was recorded"
        for name in sorted(locked.keys() & found.keys())
        if locked[name] != found[name]
    ]


def append(folder: Path) -> None:
    """List the histories that are not listed yet.

    Raises:
        SystemExit: One that is listed was changed or removed.
    """
    locked, found = read_lock(folder), digests(folder)
    if wrong := differences(locked, {name: found[name] for name in found if name in locked}):
        sys.exit(f"{'; '.join(wrong)}: restore it, a recorded history stays as it is")
    lock_of(folder).write_text(json.dumps({**found, **locked}, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    append(HISTORIES)
