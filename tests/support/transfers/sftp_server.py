"""SFTP servers for tests: asyncssh's own in several characters, and OpenSSH's `sftp-server`."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import asyncssh

from workflows.transfers.partners import HostKey, Limits, Partner, PlaceKind

OPENSSH = Path("/usr/lib/openssh/sftp-server")
USER, PASSWORD = "docflow", "planted-sftp-password-7731"
EXPIRED = "planted-sftp-password-of-last-year"
"""Another one is asked for when this one is given."""


class Whole(asyncssh.SFTPServer):
    """Serves a folder; `posix-rename` works."""

    folder: Path
    """Set by a subclass of each server."""

    def __init__(self, channel: "asyncssh.SSHServerChannel[bytes]") -> None:
        super().__init__(channel, chroot=str(self.folder).encode())


class WithoutPosixRename(Whole):
    """Refuses a rename onto a name that is taken, as Azure's server does."""

    def posix_rename(self, oldpath: bytes, newpath: bytes) -> None:
        raise asyncssh.SFTPOpUnsupported("no such extension")


class WithoutRename(WithoutPosixRename):
    """Renames nothing."""

    def rename(self, oldpath: bytes, newpath: bytes) -> None:
        raise asyncssh.SFTPOpUnsupported("no renames")


class WithoutAttributes(Whole):
    """Refuses chmod and utime."""

    def setstat(self, path: bytes, attrs: asyncssh.SFTPAttrs) -> None:
        raise asyncssh.SFTPPermissionDenied("attributes cannot be set")


class Replacing(Whole):
    """Its plain rename replaces what has the name, as some servers' does."""

    def rename(self, oldpath: bytes, newpath: bytes) -> None:
        self.posix_rename(oldpath, newpath)


class RefusingNames(Whole):
    """Lets files be written, and refuses to rename them to `refused.csv`."""

    def rename(self, oldpath: bytes, newpath: bytes) -> None:
        self.posix_rename(oldpath, newpath)

    def posix_rename(self, oldpath: bytes, newpath: bytes) -> None:
        if newpath.endswith(b"refused.csv"):
            raise asyncssh.SFTPPermissionDenied("not that name")
        super().posix_rename(oldpath, newpath)


class Asked(Whole):
    """Notes which single files it is asked about."""

    paths: ClassVar[list[bytes]] = []

    def lstat(self, path: bytes) -> Any:
        Asked.paths.append(path)
        return super().lstat(path)

    def stat(self, path: bytes) -> Any:
        Asked.paths.append(path)
        return super().stat(path)


@dataclass
class SftpSite:
    """A server that runs.

    Attributes:
        logins: How many logins succeeded.
        files: Characters of files that were opened.
    """

    folder: Path
    port: int
    host_key: asyncssh.SSHKey
    client_key: asyncssh.SSHKey
    logins: list[str] = field(default_factory=list)

    def partner(self, **fields: Any) -> Partner:
        """A partner that knows it."""
        given: dict[str, Any] = {
            "name": "acme",
            "kind": PlaceKind.SFTP,
            "host": "127.0.0.1",
            "port": self.port,
            "user": USER,
            "password": "env:SFTP_PASSWORD",
            "host_keys": (pinned(self.host_key),),
            "limits": Limits(sessions=20, connections_per_second=100),
        }
        return Partner(**{**given, **fields})


def pinned(key: asyncssh.SSHKey) -> HostKey:
    """A key as it stands in a record."""
    return HostKey(key=" ".join(key.export_public_key("openssh").decode().split()[:2]))


@asynccontextmanager
async def sftp_site(
    folder: Path,
    character: type[Whole] | None = Whole,
    host_key: asyncssh.SSHKey | None = None,
    port: int = 0,
    **offers: Any,
) -> AsyncIterator[SftpSite]:
    """Run a server for the length of the block.

    Args:
        folder: What it serves.
        character: How it serves it; None: OpenSSH's `sftp-server` does.
        host_key: That it shows; None: one of its own.
        port: Where; 0: wherever there is room.
        offers: Algorithms, as asyncssh takes them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    host_key = host_key or asyncssh.generate_private_key("ssh-ed25519")
    client_key = asyncssh.generate_private_key("ssh-ed25519")
    logins: list[str] = []
    programs: list[asyncio.Task[None]] = []

    class Server(asyncssh.SSHServer):
        def begin_auth(self, username: str) -> bool:
            return True

        def password_auth_supported(self) -> bool:
            return True

        def validate_password(self, username: str, password: str) -> bool:
            logins.append("password")
            if password == EXPIRED:
                raise asyncssh.PasswordChangeRequired("it is of last year")
            return (username, password) == (USER, PASSWORD)

        def kbdint_auth_supported(self) -> bool:
            return False

        def public_key_auth_supported(self) -> bool:
            return True

        def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
            logins.append("key")
            return key.public_data == client_key.public_data

    class OpenSshServer(Server):
        def session_requested(self) -> "asyncssh.SSHServerSession[bytes]":
            return _Program(folder, programs)

    factory: type[asyncssh.SSHServer] = Server
    how: dict[str, Any] = {"encoding": None}
    if character is None:
        factory = OpenSshServer
    else:
        how = {"sftp_factory": type("Served", (character,), {"folder": folder})}
    server = await asyncssh.create_server(
        factory, "127.0.0.1", port, server_host_keys=[host_key], **how, **offers
    )
    try:
        yield SftpSite(folder, server.get_port(), host_key, client_key, logins)
    finally:
        server.close()
        await server.wait_closed()
        await asyncio.gather(*programs)


class _Program(asyncssh.SSHServerSession[bytes]):
    """OpenSSH's `sftp-server` behind a session of this server."""

    def __init__(self, folder: Path, programs: list[asyncio.Task[None]]) -> None:
        self._folder, self._programs = folder, programs
        self._arrived: asyncio.Queue[bytes] = asyncio.Queue()

    def connection_made(self, chan: "asyncssh.SSHServerChannel[bytes]") -> None:
        self._channel = chan

    def subsystem_requested(self, subsystem: str) -> bool:
        return subsystem == "sftp"

    def session_started(self) -> None:
        self._programs.append(asyncio.create_task(self._run()))

    def data_received(self, data: bytes, datatype: int | None) -> None:
        self._arrived.put_nowait(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived.put_nowait(b"")

    async def _run(self) -> None:
        child = await asyncio.create_subprocess_exec(
            str(OPENSSH),
            cwd=self._folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={"PATH": os.defpath, "HOME": str(self._folder)},
        )
        assert child.stdin is not None and child.stdout is not None
        answering = asyncio.create_task(self._answer(child.stdout))
        while data := await self._arrived.get():
            child.stdin.write(data)
        child.stdin.close()
        await answering
        await child.wait()

    async def _answer(self, output: asyncio.StreamReader) -> None:
        while data := await output.read(1 << 16):
            if not self._channel.is_closing():
                self._channel.write(data)
