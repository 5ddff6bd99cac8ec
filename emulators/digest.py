"""The digest of what the tests of the emulators have passed with: `make emulators` writes it anew.

python -m emulators.digest           # exits with 1 if the tests have to run
python -m emulators.digest --write   # after they have passed
"""

import hashlib
import re
import sys
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
RECORDED: Final = FOLDER / "tested.sha256"
_CLIENTS: Final = re.compile(r"^azure-(?:servicebus|eventhub)==\S+", re.MULTILINE)
_LOCK: Final = FOLDER.parent / "requirements.lock"


def digest() -> str:
    """Of every Python file here, and of the releases of the clients."""
    found = hashlib.sha256()
    for path in sorted(FOLDER.rglob("*.py")):
        found.update(f"{path.relative_to(FOLDER)}\0".encode())
        found.update(path.read_bytes())
    found.update(" ".join(_CLIENTS.findall(_LOCK.read_text())).encode())
    return found.hexdigest()


def is_tested() -> bool:
    """Whether the tests have passed with what is here."""
    return RECORDED.is_file() and RECORDED.read_text().strip() == digest()


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        RECORDED.write_text(f"{digest()}\n")
    elif not is_tested():
        sys.exit("the emulators have changed since their tests passed: `make emulators`")
