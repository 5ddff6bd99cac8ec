"""What an SFTP server says about its names: files, folders, links.

Servers differ. Some answer FAILURE or PERMISSION_DENIED about a file that does not exist, some know
neither `stat` nor `realpath`. Where a question fails, the list of the folder decides.
"""

import stat
from collections.abc import Awaitable, Callable
from typing import Any, Final

import asyncssh

from adapters.ports import PortError
from adapters.ports.places import FileMissing, NameRefused, PartnerAway
from domain.transfers.paths import join, printable, split

Ask = Callable[[Awaitable[Any], str], Awaitable[Any]]
"""Waits for an answer about a path, with errors of the ports."""
_DOTS: Final = (".", "..")


class SftpNames:
    """Looks up names at one server.

    Args:
        sftp: The session.
        root: Folder that no path leaves; empty: where the session begins.
        ask: Waits for an answer.
    """

    def __init__(self, sftp: asyncssh.SFTPClient, root: str, ask: Ask) -> None:
        self._sftp, self._root, self._ask = sftp, root.rstrip("/"), ask
        self._real_root: str | None = None
        self._resolves = True

    def at(self, path: str) -> str:
        """Return a path as the server knows it."""
        return f"{self._root}/{path}" if self._root and path else self._root or path

    async def facts(self, path: str) -> asyncssh.SFTPAttrs | None:
        """Return what the server says of a name, links not followed; None: it does not exist.

        Raises:
            PortError: Neither the name nor its folder can be looked at.
        """
        try:
            return await self._ask(self._sftp.lstat(self.at(path)), path)
        except FileMissing:
            return None
        except PartnerAway:
            raise
        except PortError as refused:
            return await self._listed(path, refused)

    async def followed(self, path: str, facts: asyncssh.SFTPAttrs) -> asyncssh.SFTPAttrs:
        """Return what a link leads to; other names as they are.

        Raises:
            NameRefused: It leads out of the root.
            FileMissing: It leads nowhere.
        """
        if not is_link(facts):
            return facts
        await self.check_inside(path)
        return await self._ask(self._sftp.stat(self.at(path)), path)

    async def is_folder(self, path: str) -> bool:
        """Return whether a name is a folder, or a link to one."""
        facts = await self.facts(path)
        if facts is None:
            return False
        if is_link(facts):
            return bool(await self._ask(self._sftp.isdir(self.at(path)), path))
        return stat.S_ISDIR(facts.permissions or stat.S_IFDIR)

    async def check_inside(self, path: str) -> bool:
        """Return whether a name exists; a link must not lead out of the root.

        Raises:
            NameRefused: It does, or the server does not say where a link leads.
        """
        if self._resolves:
            try:
                if self._real_root is None:
                    root = self._sftp.realpath(self._root or ".")
                    self._real_root = str(await self._ask(root, ""))
                real = str(await self._ask(self._sftp.realpath(self.at(path)), path))
            except FileMissing:
                return False
            except PartnerAway:
                raise
            except PortError:
                # It may know `realpath` and refuse a name that does not exist.
                self._resolves = self._real_root is not None
            else:
                if real != self._real_root and not real.startswith(
                    self._real_root.rstrip("/") + "/"
                ):
                    raise NameRefused(
                        f"{printable(path)} leads out of the partner's folder by a link"
                    )
                return True
        return await self._is_without_links(path)

    async def _is_without_links(self, path: str) -> bool:
        done = ""
        for part in filter(None, path.split("/")):
            done = join(done, part)
            facts = await self.facts(done)
            if facts is None:
                return False
            if is_link(facts):
                raise NameRefused(
                    f"{printable(done)} is a link, and the server does not say where it leads"
                )
        return True

    async def _listed(self, path: str, refused: PortError) -> asyncssh.SFTPAttrs | None:
        folder, wanted = split(path)

        async def found() -> asyncssh.SFTPAttrs | None:
            # As bytes: one name that is not UTF-8 would hide all others.
            async for each in self._sftp.scandir((self.at(folder) or ".").encode()):
                if text_of(each.filename) == wanted:
                    return each.attrs
            return None

        if not wanted or wanted in _DOTS:
            raise refused
        try:
            return await self._ask(found(), folder)
        except FileMissing:
            return None
        except PartnerAway:
            raise
        except PortError:
            raise refused from None


def is_link(facts: asyncssh.SFTPAttrs) -> bool:
    """Return whether a name is a symbolic link."""
    return facts.permissions is not None and stat.S_ISLNK(facts.permissions)


def text_of(name: str | bytes) -> str:
    """Return a name as text; bytes that are not UTF-8 stay recognisable."""
    return name.decode(errors="surrogateescape") if isinstance(name, bytes) else name
