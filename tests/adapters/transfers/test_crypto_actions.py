"""Actions with the keys of a partner, by the real GnuPG."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.transfers.crypto import Crypto, CryptoPorts
from adapters.files.openpgp.keyring import GnuPg
from tests.support.imports.activities import environment
from tests.support.transfers.actions import Endpoints
from tests.support.transfers.openpgp import Forge, Party
from tests.support.transfers.secrets import PlantedSecrets
from workflows.shared.errors import INVALID_DOCUMENT, PERMANENT, UNREADABLE_DOCUMENT
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.runs import ActionResult, Manifest
from workflows.transfers.settings import Action, Decrypt, Encrypt, Sign, Verify

pytestmark = pytest.mark.gnupg

TEXT = b"stop;lat;lon\n" * 500
FILES = {"a.csv": TEXT, "out/b.csv": b"1"}


@pytest.fixture(scope="module")
def parties(forge: Forge) -> Mapping[str, Party]:
    return {
        "us": forge.party("us", "our passphrase"),
        "acme": forge.party("acme", "their passphrase"),
        "old": forge.party("acme of old", expired=True),
        "other": forge.party("other"),
    }


class Sides:
    """We, and the partner in its own place: what one encrypts, the other decrypts."""

    def __init__(self, folder: Path, parties: Mapping[str, Party]) -> None:
        secrets = PlantedSecrets()
        us, acme, old = (parties[name] for name in ("us", "acme", "old"))
        ours = (us.own(secrets), old.partner(), acme.partner())
        theirs = (acme.own(secrets), us.partner())
        only_old = (us.own(secrets), old.partner())
        self.ends = Endpoints.at(
            folder,
            *(
                Partner(name=name, kind=PlaceKind.FOLDER, container=str(folder), keys=keys)
                for name, keys in (("acme", ours), ("us", theirs), ("old", only_old))
            ),
        )
        ends = self.ends
        self.crypto = Crypto(
            CryptoPorts(GnuPg(secrets), ends.partners, ends.ports.staging, ends.scratch / "scratch")
        )

    async def staged(self, files: Mapping[str, bytes]) -> Manifest:
        return await self.ends.staged(self.ends.order(Decrypt(partner="acme"), {}), **files)

    async def run(self, action: Action, manifest: Manifest) -> ActionResult:
        order = self.ends.order(action, {}, manifest)
        activity: Any = getattr(self.crypto, action.action.lower())
        result: ActionResult = await environment().run(activity, order)
        return result

    async def refused(self, action: Action, manifest: Manifest, message: str) -> str | None:
        before = {ref.name for ref in await self.ends.blobs.list("staging/", 1_000)}
        with pytest.raises(ApplicationError, match=message) as failed:
            await self.run(action, manifest)
        after = {ref.name for ref in await self.ends.blobs.list("staging/", 1_000)}
        assert after == before, "what was staged is removed"
        return failed.value.type


@pytest.fixture
def sides(tmp_path: Path, parties: Mapping[str, Party]) -> Sides:
    return Sides(tmp_path, parties)


async def test_files_are_encrypted_signed_decrypted_and_known_by_their_signer(
    sides: Sides, parties: Mapping[str, Party]
) -> None:
    us, acme = parties["us"].fingerprint, parties["acme"].fingerprint
    sealed = await sides.run(Encrypt(partner="acme", sign_with=us), await sides.staged(FILES))
    messages = await sides.ends.contents(sealed.files)
    assert list(messages) == ["a.csv.pgp", "out/b.csv.pgp"]
    assert TEXT[:40] not in messages["a.csv.pgp"]
    opened = await sides.run(Decrypt(partner="us"), sealed.files)
    assert await sides.ends.contents(opened.files) == FILES
    assert opened.remarks == ()
    assert opened.step is not None
    step = b"".join([piece async for piece in sides.ends.ports.staging.read(opened.step)]).decode()
    assert f"signed by {us}" in step
    unsigned = await sides.run(
        Encrypt(partner="acme", recipients=(acme,)), await sides.staged(FILES)
    )
    assert (
        await sides.refused(Decrypt(partner="us"), unsigned.files, "'a.csv.pgp': it is not signed")
        == PERMANENT
    )
    allowed = await sides.run(Decrypt(partner="us", require_signature=False), unsigned.files)
    assert allowed.remarks == ("files not signed by us: 2",)


async def test_a_message_of_nothing_is_a_remark(sides: Sides, parties: Mapping[str, Party]) -> None:
    seal = Encrypt(partner="acme", sign_with=parties["us"].fingerprint)
    sealed = await sides.run(seal, await sides.staged({**FILES, "none.csv": b""}))
    opened = await sides.run(Decrypt(partner="us"), sealed.files)
    assert opened.remarks == ("1 of 3 files are empty",)


async def test_an_expired_key_of_a_partner_is_passed_over_or_refused_by_name(
    sides: Sides, parties: Mapping[str, Party]
) -> None:
    manifest = await sides.staged(FILES)
    old = parties["old"].fingerprint
    named = Encrypt(partner="acme", recipients=(old,))
    assert await sides.refused(named, manifest, f"{old}: it has expired on 2020") == PERMANENT
    passed_over = await sides.run(Encrypt(partner="acme"), manifest)
    (remark,) = passed_over.remarks
    assert remark.startswith(f"nothing is encrypted to the key {old}: it has expired on 2020")
    everything = Encrypt(partner="old")
    none = f"no key that can be encrypted to and is valid; {old}: it has expired on 2020"
    assert await sides.refused(everything, manifest, none) == PERMANENT
    stranger = Encrypt(partner="acme", recipients=(parties["other"].fingerprint,))
    assert await sides.refused(stranger, manifest, "partner acme has no key") == PERMANENT
    assert await sides.refused(Encrypt(partner="nobody"), manifest, "no partner nobody")


async def test_what_cannot_be_decrypted_leaves_no_plaintext(sides: Sides) -> None:
    sealed = await sides.run(Encrypt(partner="acme"), await sides.staged(FILES))
    message = (await sides.ends.contents(sealed.files))["a.csv.pgp"]
    action = Decrypt(partner="us", require_signature=False)
    for content, reason in (
        (message[:-20] + bytes(20), "'a.csv.pgp': it was changed or cut off"),
        (message[:-20], "'a.csv.pgp'"),
        (TEXT, "'a.csv.pgp': it is not an OpenPGP message"),
    ):
        manifest = await sides.staged({"b.csv.pgp": message, "a.csv.pgp": content})
        assert await sides.refused(action, manifest, reason) == UNREADABLE_DOCUMENT
    small = action.model_copy(update={"bytes_at_most": 100})
    assert await sides.refused(small, sealed.files, "more than 100 bytes") == UNREADABLE_DOCUMENT
    both = await sides.staged({"a.csv": b"1", "a.csv.pgp": message})
    assert await sides.refused(action, both, "'a.csv': it is not an OpenPGP message")
    twice = await sides.staged({"a.csv.gpg": message, "a.csv.pgp": message})
    reason = "two files would be called 'a.csv'"
    assert await sides.refused(action, twice, reason) == INVALID_DOCUMENT


async def test_files_are_signed_and_verified_beside_their_signatures(
    sides: Sides, parties: Mapping[str, Party]
) -> None:
    us, acme = parties["us"].fingerprint, parties["acme"].fingerprint
    signed = await sides.run(Sign(partner="acme", sign_with=us), await sides.staged(FILES))
    files = await sides.ends.contents(signed.files)
    assert list(files) == ["a.csv", "a.csv.asc", "out/b.csv", "out/b.csv.asc"]
    verified = await sides.run(Verify(partner="us"), signed.files)
    assert await sides.ends.contents(verified.files) == FILES
    kept = await sides.run(Verify(partner="us", keep_signatures=True), signed.files)
    assert await sides.ends.contents(kept.files) == files
    changed = await sides.staged({**files, "a.csv": TEXT + b"x"})
    reason = "'a.csv': its signature is bad"
    assert await sides.refused(Verify(partner="us"), changed, reason) == UNREADABLE_DOCUMENT
    missing = await sides.staged({"a.csv": TEXT})
    reason = "'a.csv': it has no signature beside it"
    assert await sides.refused(Verify(partner="us"), missing, reason) == UNREADABLE_DOCUMENT
    wrong = await sides.run(Sign(partner="us", sign_with=acme), await sides.staged(FILES))
    assert await sides.refused(Verify(partner="us"), wrong.files, acme) == PERMANENT
    not_ours = Sign(partner="acme", sign_with=acme)
    assert await sides.refused(not_ours, missing, "private part is not ours") == PERMANENT


@pytest.mark.parametrize("how", ["--sign", "--clear-sign", "--armor --sign", "--sign -z 0"])
async def test_a_signed_message_becomes_what_was_signed(
    sides: Sides, parties: Mapping[str, Party], forge: Forge, how: str
) -> None:
    def signed(by: str) -> bytes:
        key = parties[by].fingerprint
        more = ["--pinentry-mode", "loopback", "--passphrase", "their passphrase"]
        return forge.call(*more, "--local-user", key, *how.split(), given=TEXT)

    message = signed("acme")
    detached = await sides.run(
        Sign(partner="us", sign_with=parties["acme"].fingerprint), await sides.staged(FILES)
    )
    beside = await sides.ends.contents(detached.files)
    action = Verify(partner="acme")
    verified = await sides.run(action, await sides.staged({"c.csv.asc": message, **beside}))
    assert await sides.ends.contents(verified.files) == {"c.csv": TEXT, **FILES}
    changed = bytearray(message)
    changed[len(message) // 2] ^= 1
    for wrong in (bytes(changed), message[: len(message) // 2]):
        files = await sides.staged({"c.csv.asc": wrong})
        with pytest.raises(ApplicationError):
            await sides.run(action, files)
    other = await sides.staged({"c.csv": signed("other")})
    assert await sides.refused(action, other, "not signed by an expected key") == PERMANENT
    sealed = await sides.run(Encrypt(partner="us"), await sides.staged({"c.csv": TEXT}))
    assert await sides.refused(action, sealed.files, "it is encrypted") == UNREADABLE_DOCUMENT
