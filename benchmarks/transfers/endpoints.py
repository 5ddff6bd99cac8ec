"""Where a large file comes from, what looks into it, and where it goes."""

import asyncio
import base64
import hmac
import os
import subprocess
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from adapters.azure.storage_account import StorageAccount
from adapters.files.openpgp.home import gnupg_home
from stack.clamd import PLANTED, clamd
from stack.openpgp import MadeKey, make_key
from stack.sftp import SftpServer, sftp_server

CONTAINER: Final = "written"
_BLOCK: Final = 1 << 20


@dataclass(frozen=True)
class Endpoints:
    """What docflow and the shell both use.

    Attributes:
        home: Of GnuPG, with `key`: it signs, and is encrypted to.
    """

    folder: Path
    sftp: SftpServer
    clamd: str
    home: Path
    key: MadeKey


@asynccontextmanager
async def endpoints(folder: Path) -> AsyncGenerator[Endpoints]:
    """An SFTP server, clamd, and a key."""
    async with AsyncExitStack() as stack:
        home = await stack.enter_async_context(gnupg_home())
        sftp = await stack.enter_async_context(sftp_server(folder / "partner"))
        # Without its memory of files that it has seen: the same one is scanned again.
        scanner = clamd(folder / "clamd", DisableCache="yes")
        address = await stack.enter_async_context(scanner)
        key = await asyncio.to_thread(make_key, home, "bench")
        yield Endpoints(folder, sftp, address, home, key)


def make_message(at: Endpoints, name: str, megabytes: int, *, planted: bool = False) -> None:
    """Put a file onto the server that is encrypted and signed, as a partner would send it.

    Args:
        at: The endpoints.
        name: Of the message.
        megabytes: Of random bytes in it.
        planted: A signature stands in the last megabyte.
    """
    plain = at.folder / "plain"
    with plain.open("wb") as sink:
        for _ in range(megabytes):
            sink.write(os.urandom(_BLOCK))
        if planted:
            sink.seek(-_BLOCK // 2, os.SEEK_END)
            sink.write(PLANTED)
    subprocess.run(
        [
            *("gpg", "--homedir", str(at.home), "--batch", "--yes", "--trust-model", "always"),
            *("-z", "0", "--sign", "--encrypt", "-r", at.key.fingerprint),
            *("-o", str(at.sftp.folder / name), str(plain)),
        ],
        check=True,
        capture_output=True,
    )
    plain.unlink()


def signed_url(storage: str, path: str) -> str:
    """A URL that permits its holder to write for a day.

    Source: "Create an account SAS" of the Azure Storage REST reference.
    """
    account = StorageAccount.from_connection_string(storage)
    expiry = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    values = {"sp": "rwc", "ss": "b", "srt": "o", "se": expiry, "sv": "2020-10-02"}
    signed = [account.name, values["sp"], values["ss"], values["srt"], "", expiry, "", ""]
    text = "\n".join([*signed, values["sv"], ""]).encode()
    digest = hmac.digest(base64.b64decode(account.key or ""), text, "sha256")
    query = urlencode({**values, "sig": base64.b64encode(digest).decode()})
    return f"{account.endpoint}/{path}?{query}"
