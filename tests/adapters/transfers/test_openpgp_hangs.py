"""An agent of GnuPG that hangs: its step fails and is tried again, and nothing stays behind."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adapters.files.openpgp.home import run
from adapters.files.openpgp.keyring import GnuPg
from adapters.ports.errors import Unavailable
from tests.support.transfers.openpgp import Forge, collected, pieces_of
from tests.support.transfers.secrets import PlantedSecrets

pytestmark = pytest.mark.gnupg

PATIENCE = 2.0
MOST = 1 << 20


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="homes-", dir="/dev/shm"))
    (made / "forge").mkdir(mode=0o700)
    yield made
    shutil.rmtree(made)


@asynccontextmanager
async def hanging_agent(folder: Path) -> AsyncGenerator[None]:
    """In place of the agent of the one home, something that accepts connections and is silent."""
    (home,) = folder.glob("docflow-pgp-*")
    await run("gpgconf", "--homedir", str(home), "--kill", "gpg-agent")
    socket, ended = home / "S.gpg-agent", asyncio.Event()
    socket.unlink(missing_ok=True)

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.close()

    async with await asyncio.start_unix_server(serve, socket):
        try:
            yield
        finally:
            ended.set()
    socket.unlink(missing_ok=True)


async def test_an_agent_that_hangs_is_ended_with_its_step(folder: Path) -> None:
    secrets, forge = PlantedSecrets(), Forge(folder / "forge")
    us = forge.party("us")
    async with GnuPg(secrets, folder).open([us.partner()]) as ring:
        message = await ring.encrypt(pieces_of(b"secret"), collected, [us.fingerprint])
    forge.close()
    async with GnuPg(secrets, folder, PATIENCE).open([us.own(secrets)]) as ring:
        async with hanging_agent(folder):
            with pytest.raises(Unavailable, match="hung"):
                await ring.decrypt(pieces_of(message), collected, [], most=MOST, signed=False)
        plain, _ = await ring.decrypt(pieces_of(message), collected, [], most=MOST, signed=False)
        assert plain == b"secret"


async def test_an_agent_that_hangs_when_it_is_to_end_holds_nothing_up(folder: Path) -> None:
    secrets, forge = PlantedSecrets(), Forge(folder / "forge")
    us = forge.party("us")
    forge.close()
    keyring = GnuPg(secrets, folder, PATIENCE).open([us.partner()])
    await keyring.__aenter__()
    async with hanging_agent(folder):
        await keyring.__aexit__(None, None, None)
    assert [each.name for each in folder.iterdir()] == ["forge"]
