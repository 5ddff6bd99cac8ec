"""OpenPGP by the real GnuPG: what is decrypted, and what never is."""

import logging
import random
import tempfile
import zlib
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from adapters.files.openpgp.home import PREFIX
from adapters.files.openpgp.keyring import GnuPg
from adapters.ports.errors import Denied, UnreadableDocument
from tests.support.transfers.openpgp import (
    OUR_PASSPHRASE,
    Forge,
    Party,
    Work,
    collected,
    pieces_of,
)
from tests.support.transfers.secrets import PlantedSecrets
from workflows.transfers.partners import OpenPgpKey

pytestmark = pytest.mark.gnupg

TEXT = b"stop;lat;lon\n" * 4_000


@pytest.mark.parametrize("armour", [False, True])
async def test_what_is_encrypted_and_signed_is_read_by_the_other_side(
    pgp: GnuPg, secrets: PlantedSecrets, forge: Forge, us: Party, acme: Party, armour: bool
) -> None:
    async with pgp.open([us.own(secrets), acme.partner()]) as ring:
        message = await ring.encrypt(
            pieces_of(TEXT), collected, [acme.fingerprint], us.fingerprint, armour=armour
        )
    assert message.startswith(b"-----BEGIN") == armour
    found = forge.gpg.decrypt(message)
    assert (found.data, found.valid) == (TEXT, True)
    assert found.pubkey_fingerprint == us.fingerprint
    packets = forge.call("--list-packets", given=message).decode()
    assert ":compressed packet:" not in packets
    assert 'name=""' in packets


@pytest.mark.parametrize("armour", [False, True])
async def test_a_message_is_decrypted_and_its_signer_named(
    pgp: GnuPg, secrets: PlantedSecrets, forge: Forge, us: Party, acme: Party, armour: bool
) -> None:
    message = forge.call(
        *(["--armor"] if armour else []),
        *("--sign", "-u", acme.fingerprint, "--encrypt", "-r", us.fingerprint),
        given=TEXT,
    )
    work = Work(pgp, us.own(secrets), acme.partner())
    assert await work.decrypt(message, acme.fingerprint) == acme.fingerprint
    assert work.whole == TEXT


async def test_one_of_several_recipients_decrypts_with_the_right_one_of_its_keys(
    pgp: GnuPg, secrets: PlantedSecrets, forge: Forge, us: Party, acme: Party, other: Party
) -> None:
    newer = forge.party("us too", "another passphrase", rsa=True)
    message = forge.call(
        *("--encrypt", "-r", other.fingerprint, "-r", newer.fingerprint), given=TEXT
    )
    work = Work(pgp, us.own(secrets), newer.own(secrets))
    assert await work.decrypt(message) is None
    assert work.whole == TEXT
    hidden = forge.call("--encrypt", "-R", us.fingerprint, given=TEXT)
    work = Work(pgp, newer.own(secrets), us.own(secrets))
    await work.decrypt(hidden)
    assert work.whole == TEXT


async def test_an_expired_key_of_ours_still_decrypts(
    pgp: GnuPg, secrets: PlantedSecrets, forge: Forge
) -> None:
    old = forge.party("us of old", OUR_PASSPHRASE, expired=True)
    message = forge.call(
        "--faked-system-time", "20200601T000000!", "--encrypt", "-r", old.fingerprint, given=TEXT
    )
    work = Work(pgp, old.own(secrets))
    await work.decrypt(message)
    assert work.whole == TEXT


async def test_nothing_is_encrypted_to_a_key_that_has_expired(
    pgp: GnuPg, secrets: PlantedSecrets, forge: Forge, acme: Party
) -> None:
    old = forge.party("acme of old", expired=True)
    async with pgp.open([old.partner(), acme.partner()]) as ring:
        facts = {each.fingerprint: each for each in ring.keys}
        assert not facts[old.fingerprint].encrypts
        assert facts[acme.fingerprint].encrypts
        work = Work(pgp)
        with pytest.raises(Denied, match="expired on 2020-12-31"):
            await ring.encrypt(
                pieces_of(TEXT), work.sink, [acme.fingerprint, old.fingerprint], None
            )
        assert work.whole is None


async def test_a_signature_of_an_expired_key_is_refused(
    pgp: GnuPg, secrets: PlantedSecrets, forge: Forge
) -> None:
    us = forge.party("us, long since", old=True)
    old = forge.party("signer of old", expired=True)
    message = forge.call(
        *("--faked-system-time", "20200601T000000!", "--sign", "-u", old.fingerprint),
        *("--encrypt", "-r", us.fingerprint),
        given=TEXT,
    )
    work = Work(pgp, us.own(secrets), old.partner())
    with pytest.raises(Denied, match="of a key that has expired"):
        await work.decrypt(message, old.fingerprint)
    assert work.whole is None


async def test_a_compressed_message_is_read(
    pgp: GnuPg, secrets: PlantedSecrets, forge: Forge, us: Party
) -> None:
    message = forge.call("--compress-algo", "bzip2", "--encrypt", "-r", us.fingerprint, given=TEXT)
    work = Work(pgp, us.own(secrets))
    await work.decrypt(message, most=len(TEXT))
    assert work.whole == TEXT


async def test_a_detached_signature_is_made_and_required(
    pgp: GnuPg,
    secrets: PlantedSecrets,
    forge: Forge,
    us: Party,
    acme: Party,
    other: Party,
    tmp_path: Path,
) -> None:
    path = tmp_path / "content"
    path.write_bytes(TEXT)
    async with pgp.open([us.own(secrets), acme.partner(), other.partner()]) as ring:
        ours = await ring.sign(pieces_of(TEXT), collected, us.fingerprint, armour=True)
        assert ours.startswith(b"-----BEGIN PGP SIGNATURE")
        found = await ring.verify(path, ours, [us.fingerprint])
        assert found.fingerprint == us.fingerprint
        with pytest.raises(Denied, match=us.fingerprint):
            await ring.verify(path, ours, [acme.fingerprint])
        path.write_bytes(TEXT + b"x")
        with pytest.raises(UnreadableDocument, match="changed after it was signed"):
            await ring.verify(path, ours, [us.fingerprint])
        whole = forge.call("--sign", "-u", acme.fingerprint, given=TEXT)
        for wrong in (b"", b"no signature", TEXT, whole):
            with pytest.raises(UnreadableDocument):
                await ring.verify(path, wrong, [acme.fingerprint])
        with pytest.raises(Denied, match="not ours"):
            await ring.sign(pieces_of(TEXT), collected, acme.fingerprint, armour=True)


async def test_keys_that_are_not_what_they_are_said_to_be_are_refused(
    pgp: GnuPg, secrets: PlantedSecrets, us: Party, acme: Party, other: Party
) -> None:
    swapped = OpenPgpKey(fingerprint=acme.fingerprint, public=other.public)
    both = OpenPgpKey(fingerprint=acme.fingerprint, public=acme.public + other.public)
    nothing = OpenPgpKey(fingerprint=acme.fingerprint, public="no key")
    for key in (swapped, both, nothing):
        with pytest.raises(Denied, match=acme.fingerprint):
            async with pgp.open([key]):
                pass


async def test_a_wrong_passphrase_is_named_as_such(
    pgp: GnuPg, secrets: PlantedSecrets, forge: Forge, us: Party
) -> None:
    message = forge.call("--encrypt", "-r", us.fingerprint, given=TEXT)
    own = us.own(secrets)
    secrets.values[own.passphrase or ""] = "guessed hörse"
    refused = pytest.raises(Denied, match="passphrase of a private key of ours is wrong")
    work = Work(pgp, own)
    with refused:
        await work.decrypt(message)
    async with pgp.open([own]) as ring:
        with refused:
            await ring.sign(pieces_of(TEXT), work.sink, us.fingerprint, armour=True)
        with refused:
            await ring.encrypt(pieces_of(TEXT), work.sink, [us.fingerprint], us.fingerprint)
    assert work.whole is None
    secrets.values[own.passphrase or ""] = "two\nlines"
    with pytest.raises(Denied, match="takes one line"):
        async with pgp.open([own]):
            pass


async def test_neither_log_nor_error_shows_a_secret(
    pgp: GnuPg,
    secrets: PlantedSecrets,
    forge: Forge,
    us: Party,
    acme: Party,
    caplog: pytest.LogCaptureFixture,
    homes: Path,
) -> None:
    caplog.set_level(logging.DEBUG)
    message = forge.call("--encrypt", "-r", us.fingerprint, given=TEXT)
    work = Work(pgp, us.own(secrets))
    await work.decrypt(message)
    with pytest.raises(UnreadableDocument) as refused:
        await Work(pgp, us.own(secrets)).decrypt(message[:-30])
    seen = caplog.text + repr(refused.value)
    for planted in (OUR_PASSPHRASE, "PRIVATE KEY", us.private.splitlines()[3], "stop;lat"):
        assert planted not in seen
    assert not list(homes.glob(f"{PREFIX}*"))


async def test_a_failing_source_or_sink_ends_the_work(
    pgp: GnuPg, secrets: PlantedSecrets, acme: Party
) -> None:
    async def broken() -> AsyncGenerator[bytes]:
        yield zlib.compress(TEXT)
        raise ConnectionError("the source broke")

    async def full(chunks: AsyncGenerator[bytes]) -> None:
        async for _ in chunks:
            raise OSError("no room")

    async with pgp.open([acme.partner()]) as ring:
        work = Work(pgp)
        with pytest.raises(ConnectionError, match="the source broke"):
            await ring.encrypt(broken(), work.sink, [acme.fingerprint])
        assert work.whole is None
        large = random.Random(1).randbytes(8 << 20)
        with pytest.raises(OSError, match="no room"):
            await ring.encrypt(pieces_of(large), full, [acme.fingerprint])


async def test_the_home_of_a_killed_worker_is_removed_by_the_next(
    secrets: PlantedSecrets, acme: Party
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="homes-", dir="/dev/shm"))
    left = folder / f"{PREFIX}left"
    left.mkdir()
    (left / "gpg-agent.conf").write_text("")
    async with GnuPg(secrets, folder).open([acme.partner()]):
        assert not left.exists()
        async with GnuPg(secrets, folder).open([acme.partner()]) as ring:
            assert len(list(folder.iterdir())) == 2
            assert ring.keys[0].fingerprint == acme.fingerprint
    folder.rmdir()
