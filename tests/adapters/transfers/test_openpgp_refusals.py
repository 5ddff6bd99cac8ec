"""Messages in OpenPGP that are refused, before a sink has been given their end."""

import random
import shutil
import tempfile
from pathlib import Path

import pytest

from adapters.files.openpgp.keyring import GnuPg
from adapters.ports.errors import Denied, UnreadableDocument
from tests.support.transfers.openpgp import (
    OUR_PASSPHRASE,
    Forge,
    Party,
    Work,
    without_sub_key,
)
from tests.support.transfers.secrets import PlantedSecrets

pytestmark = pytest.mark.gnupg

TEXT = b"stop;lat;lon\n" * 4_000


async def test_a_wrong_signer_is_refused_although_its_key_is_known(
    pgp: GnuPg, secrets: PlantedSecrets, forge: Forge, us: Party, acme: Party, other: Party
) -> None:
    message = forge.call(
        *("--sign", "-u", other.fingerprint, "--encrypt", "-r", us.fingerprint), given=TEXT
    )
    for keys in ([acme.partner()], [acme.partner(), other.partner()]):
        work = Work(pgp, us.own(secrets), *keys)
        with pytest.raises(Denied, match=other.fingerprint):
            await work.decrypt(message, acme.fingerprint)
        assert work.whole is None


async def test_a_second_signature_of_an_unknown_key_is_named(
    pgp: GnuPg, secrets: PlantedSecrets, forge: Forge, us: Party, acme: Party, other: Party
) -> None:
    both = ("-u", acme.fingerprint, "-u", other.fingerprint)
    message = forge.call("--sign", *both, "--encrypt", "-r", us.fingerprint, given=TEXT)
    work = Work(pgp, us.own(secrets), acme.partner())
    with pytest.raises(Denied, match=f"also signed by .*{other.fingerprint[-16:]}.*add it to"):
        await work.decrypt(message, acme.fingerprint)
    assert work.whole is None
    work = Work(pgp, us.own(secrets), acme.partner(), other.partner())
    assert await work.decrypt(message, acme.fingerprint) == acme.fingerprint
    assert work.whole == TEXT


async def test_a_signature_is_required_unless_it_is_not(
    pgp: GnuPg, secrets: PlantedSecrets, forge: Forge, us: Party, acme: Party, other: Party
) -> None:
    unsigned = forge.call("--encrypt", "-r", us.fingerprint, given=TEXT)
    work = Work(pgp, us.own(secrets), acme.partner())
    with pytest.raises(Denied, match="not signed, and a signature is required"):
        await work.decrypt(unsigned, acme.fingerprint)
    assert work.whole is None
    stranger = forge.call(
        *("--sign", "-u", other.fingerprint, "--encrypt", "-r", us.fingerprint), given=TEXT
    )
    for message in (unsigned, stranger):
        work = Work(pgp, us.own(secrets), acme.partner())
        assert await work.decrypt(message) is None
        assert work.whole == TEXT


async def test_a_message_that_was_changed_anywhere_never_comes_to_its_end(
    pgp: GnuPg, secrets: PlantedSecrets, forge: Forge, us: Party, acme: Party
) -> None:
    content = random.Random(3).randbytes(60_000)
    message = forge.call(
        *("--sign", "-u", acme.fingerprint, "--encrypt", "-r", us.fingerprint), given=content
    )
    moments = random.Random(4)
    for _ in range(12):
        changed = bytearray(message)
        changed[moments.randrange(len(changed))] ^= 1 << moments.randrange(8)
        work = Work(pgp, us.own(secrets), acme.partner())
        try:
            signer = await work.decrypt(bytes(changed), acme.fingerprint)
        except (UnreadableDocument, Denied):
            assert work.whole is None
            continue
        # A bit that means nothing, as in the length of an old packet's header.
        assert (work.whole, signer) == (content, acme.fingerprint)
    for end in (10, 100, len(message) // 2, len(message) - 1):
        work = Work(pgp, us.own(secrets), acme.partner())
        with pytest.raises(UnreadableDocument):
            await work.decrypt(message[:end], acme.fingerprint)
        assert work.whole is None


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--rfc2440", "--disable-mdc", "--encrypt", "-r"], "no integrity protection"),
        (["--sign", "-u"], "not encrypted"),
        (["--clearsign", "-u"], "not encrypted"),
        (["--store"], "not encrypted"),
        (["--passphrase", "guess", "--symmetric"], "encrypted with a passphrase"),
    ],
    ids=["no-mdc", "signed", "clear-signed", "literal", "symmetric"],
)
async def test_messages_that_are_not_encrypted_to_us_with_integrity_are_refused(
    pgp: GnuPg,
    secrets: PlantedSecrets,
    forge: Forge,
    us: Party,
    arguments: list[str],
    reason: str,
) -> None:
    whose = [us.fingerprint] if arguments[-1] in ("-r", "-u") else []
    unlock = ["--passphrase", OUR_PASSPHRASE] if "-u" in arguments else []
    message = forge.call(*unlock, *arguments, *whose, given=TEXT)
    work = Work(pgp, us.own(secrets))
    with pytest.raises(UnreadableDocument, match=reason):
        await work.decrypt(message, us.fingerprint)
    assert work.whole is None


@pytest.mark.parametrize("content", [b"", b"a;b\n", bytes(5_000), b"\xff" * 5_000, b"\x85\x01"])
async def test_what_is_no_message_is_refused(
    pgp: GnuPg, secrets: PlantedSecrets, us: Party, content: bytes
) -> None:
    work = Work(pgp, us.own(secrets))
    with pytest.raises(UnreadableDocument):
        await work.decrypt(content)
    assert work.whole is None


async def test_a_message_to_others_names_their_keys(
    pgp: GnuPg, secrets: PlantedSecrets, forge: Forge, us: Party, other: Party
) -> None:
    message = forge.call("--encrypt", "-r", other.fingerprint, given=TEXT)
    with pytest.raises(UnreadableDocument, match="encrypted to other keys than ours"):
        await Work(pgp, us.own(secrets)).decrypt(message)


async def test_a_message_to_a_private_key_without_its_sub_key_is_reported(
    pgp: GnuPg, secrets: PlantedSecrets, forge: Forge, other: Party
) -> None:
    home = Path(tempfile.mkdtemp(dir="/dev/shm"))
    own = other.own(secrets)
    secrets.values[own.private or ""] = without_sub_key(other, home)
    shutil.rmtree(home)
    async with pgp.open([own]) as ring:
        (facts,) = ring.keys
    assert facts.secret and not facts.decrypts and len(facts.lacking) == 1
    message = forge.call("--encrypt", "-r", other.fingerprint, given=TEXT)
    with pytest.raises(UnreadableDocument, match=f"lacks the private part of {facts.lacking[0]}"):
        await Work(pgp, own).decrypt(message)


async def test_a_bomb_ends_at_its_limit(
    pgp: GnuPg, secrets: PlantedSecrets, forge: Forge, us: Party
) -> None:
    message = forge.call(
        *("--compress-algo", "zlib", "-z", "9", "--encrypt", "-r", us.fingerprint),
        given=bytes(64 << 20),
    )
    assert len(message) < 1 << 20
    work = Work(pgp, us.own(secrets))
    with pytest.raises(UnreadableDocument, match="more than 1,000,000 bytes"):
        await work.decrypt(message, most=1_000_000)
    assert work.whole is None
    assert sum(map(len, work.seen)) <= 1_000_000
