"""An SFTP server for the demo and benchmarks: asyncssh's own, in a process of its own."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from stack.children import child, free_port, wait_for_port

USER = "docflow"


@dataclass(frozen=True)
class SftpServer:
    """A server that runs.

    Attributes:
        folder: What it serves, as its root.
        host_key: That it shows, as in `known_hosts`: algorithm and base64.
        login: File with the private key that it accepts, for any user.
    """

    folder: Path
    port: int
    host_key: str
    login: Path


@asynccontextmanager
async def sftp_server(folder: Path) -> AsyncGenerator[SftpServer]:
    """Run a server on a free loopback port.

    Args:
        folder: Takes its keys and its log; `files` in it is served.

    Raises:
        StackError: It did not start, and where its log is.
    """
    served = folder / "files"
    served.mkdir(parents=True, exist_ok=True)
    for name in ("host", "login"):
        key = asyncssh.generate_private_key("ssh-ed25519")
        (folder / name).touch(mode=0o600)
        key.write_private_key(str(folder / name))
        key.write_public_key(str(folder / f"{name}.pub"))
    port = free_port()
    command = [sys.executable, "-m", "stack.sftp", str(folder), str(port)]
    log = folder / "sftp.log"
    async with child(command, log) as process:
        await wait_for_port(process, port, "the SFTP server", log)
        host_key = " ".join((folder / "host.pub").read_text().split()[:2])
        yield SftpServer(served, port, host_key, folder / "login")


async def _serve(folder: Path, port: int) -> None:
    def files(channel: "asyncssh.SSHServerChannel[bytes]") -> asyncssh.SFTPServer:
        return asyncssh.SFTPServer(channel, chroot=str(folder / "files").encode())

    await asyncssh.listen(
        "127.0.0.1",
        port,
        server_host_keys=[str(folder / "host")],
        authorized_client_keys=str(folder / "login.pub"),
        sftp_factory=files,
    )
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2])))
