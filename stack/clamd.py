"""ClamAV's daemon for tests and the embedded stack, with a few signatures of its own.

Debian's package `clamav-daemon` brings the program; the signatures that freshclam would fetch are
not needed, and these ones state no age.
"""

import hashlib
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from adapters.clamd import eicar
from stack.children import StackError, child, free_port, wait_for_port

PLANTED: Final = b"docflow plants this signature in files of tests"
"""What the scanner takes for a virus wherever it stands in a file."""
PLANTED_NAME: Final = "Docflow.Test.Planted.UNOFFICIAL"
EICAR_NAME: Final = "Eicar-Test-Signature.UNOFFICIAL"
_SYSTEM: Final = "/usr/sbin:/usr/local/sbin"
_SETTINGS: Final[Mapping[str, str]] = {
    "Foreground": "yes",
    "StreamMaxLength": "2000M",
    "MaxFileSize": "2000M",
    "MaxScanSize": "4000M",
    "AlertExceedsMax": "yes",
    "AlertEncrypted": "yes",
}


def clamd_program() -> str | None:
    """Path of the daemon; None: it is not installed."""
    return shutil.which("clamd") or shutil.which("clamd", path=_SYSTEM)


@asynccontextmanager
async def clamd(folder: Path, **settings: str) -> AsyncGenerator[str]:
    """Run the daemon on a free loopback port.

    Args:
        folder: Takes its settings, signatures, log, and files while they are scanned.
        settings: Of clamd.conf, instead of those that the stack has.

    Yields:
        Its address, as CLAMD_ADDRESS takes it.

    Raises:
        StackError: It is not installed, or did not start.
    """
    program = clamd_program()
    if program is None:
        raise StackError("clamd is missing: apt-get install clamav-daemon")
    signatures = folder / "signatures"
    _write_signatures(signatures)
    port = free_port()
    whole = {
        **_SETTINGS,
        "TCPSocket": str(port),
        "TCPAddr": "127.0.0.1",
        "DatabaseDirectory": str(signatures),
        "TemporaryDirectory": str(folder),
        **settings,
    }
    conf = folder / "clamd.conf"
    conf.write_text("".join(f"{name} {value}\n" for name, value in whole.items()))
    log = folder / "clamd.log"
    async with child([program, "--config-file", str(conf)], log) as process:
        await wait_for_port(process, port, "clamd", log)
        yield f"tcp:127.0.0.1:{port}"


def _write_signatures(folder: Path) -> None:
    """Source: "ClamAV Signatures", formats of hash and of body signatures."""
    content = eicar()
    digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
    folder.mkdir(parents=True)
    (folder / "stack.hdb").write_text(f"{digest}:{len(content)}:Eicar-Test-Signature\n")
    (folder / "stack.ndb").write_text(f"Docflow.Test.Planted:0:*:{PLANTED.hex()}\n")
