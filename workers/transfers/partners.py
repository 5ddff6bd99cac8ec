"""What people do with partners: add, change, test them, and accept their keys."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import ValidationError

from adapters.files.openpgp.keyring import GnuPg
from adapters.ports.errors import Denied, NotInstalled, NotYet, PortError, Unavailable
from adapters.ports.places import PartnerAway, Place, Places, UnknownHostKey
from adapters.ports.transfers import KeyInfo, PartnerStore, WrongKey
from workers.shared.services.errors import Conflict, InvalidRequest, NotFound, Refused
from workers.shared.services.identity import Identity, require_operator
from workers.shared.services.versions import require_version
from workflows.shared.contracts import problem_text
from workflows.shared.errors import RuleViolation
from workflows.transfers.partners import (
    HOSTS,
    HostKey,
    OpenPgpKey,
    Partner,
    PlaceKind,
    Rename,
    ServerProfile,
    check_record,
    fingerprint,
    valid_host_keys,
)

_RENAMES: Final = {
    Rename.ATOMIC_REPLACE: "a file replaces another in one step: no reader sees a partial file",
    Rename.NON_ATOMIC: "a rename onto an existing name is refused: what is there is removed first",
    Rename.DIRECT: "it renames nothing: files are written under their own names and read back",
}


def said_of_probe(partner: Partner, profile: ServerProfile) -> Sequence[str]:
    """What was written, how files are written, and what failed."""
    sentences = [*_probed(profile), _written(partner, profile)]
    sentences += [f"it failed at {each}" for each in profile.failed]
    if profile.extensions:
        sentences.append(f"its extensions: {', '.join(profile.extensions)}")
    return sentences


def _probed(profile: ServerProfile) -> Sequence[str]:
    """What a test has written."""
    if not profile.probed_with:
        return ["nothing was written"]
    if profile.takes_at_close:
        return [f"written for the test, and taken by the server: {profile.probed_with[0]}"]
    removed = [path for path in profile.probed_with if path not in profile.left_behind]
    sentences = [f"written for the test, and removed: {', '.join(removed)}"] if removed else []
    if profile.left_behind:
        left = ", ".join(profile.left_behind)
        sentences.append(f"written for the test, and it could not be removed: {left}; remove it")
    return sentences


def _written(partner: Partner, profile: ServerProfile) -> str:
    """How files are written there."""
    if partner.write is not None:
        return f"files are written as its record says: {partner.write}"
    if profile.takes_at_close:
        return (
            "it takes a file as soon as it is closed: files are written under their own names, "
            "and none can be read back"
        )
    return _RENAMES[profile.rename]


def spoils_transfers(profile: ServerProfile) -> bool:
    """Whether a step failed that no transfer can do without; one without renames works."""
    return any(not each.startswith("rename:") for each in profile.failed)


_OURS: Final = ("revision", "by", "changed_at", "profile", "stopped")
"""Fields that docflow sets."""
_KEPT: Final = ("host_keys", "keys", "write", "algorithms")
"""Fields that a new record keeps where it does not hold them."""
_WHERE: Final = ("kind", "host", "port", "container", "root", "user")
_LISTED: Final = 100


@dataclass(frozen=True)
class PartnerReport:
    """What a test of a partner saw."""

    works: bool
    sentences: Sequence[str]
    shown: str | None = None
    """Fingerprint of a host key that is not pinned."""


class PartnerRecords:
    """The records of partners, for who has no secrets of them; a refusal is a `ServiceError`.

    Args:
        store: Keeps the records.
    """

    def __init__(self, store: PartnerStore) -> None:
        self._store = store

    async def all(self, who: Identity) -> Sequence[Partner]:
        """Records by name; they hold references and no secrets."""
        require_operator(who, "partners")
        return await self._store.all()

    async def get(self, who: Identity, name: str) -> Partner:
        """One record.

        Raises:
            NotFound: There is none.
        """
        require_operator(who, "partners")
        partner = await self._store.get(name)
        if partner is None:
            raise NotFound(f"there is no partner {name}")
        return partner

    async def add(self, who: Identity, record: Mapping[str, Any]) -> Partner:
        """Add a partner.

        Args:
            who: Who does it.
            record: Fields of a `Partner`.

        Raises:
            InvalidRequest: A field is missing, unknown or wrong; no message holds its value.
            Refused: There is one of that name.
        """
        require_operator(who, "partners")
        partner = _record(record)
        if await self._store.get(partner.name) is not None:
            raise Refused(f"there is a partner {partner.name} already: replace it")
        return await self._put(who, partner, None)

    async def replace(
        self,
        who: Identity,
        name: str,
        record: Mapping[str, Any],
        versions: Collection[str] | None = None,
    ) -> Partner:
        """Replace the record of a partner.

        It keeps pinned keys, old algorithms and the way of writing where the new record does not
        hold them.

        Args:
            who: Who does it.
            name: Of the partner.
            record: Fields of a `Partner`.
            versions: Of which the person has seen one; None: whichever it has.

        Raises:
            InvalidRequest: A field is missing, unknown or wrong; no message holds its value.
            NotFound: There is none of that name.
            Conflict: Another person has changed it meanwhile.
        """
        partner, before = _record(record), await self.get(who, name)
        if partner.name != name:
            raise InvalidRequest(f"the record is of {partner.name}, and not of {name}")
        require_version(before, versions)
        kept = {name: getattr(before, name) for name in _KEPT if name not in record}
        if all(getattr(before, name) == getattr(partner, name) for name in _WHERE):
            # The server that was probed: to probe it again would leave files there.
            kept["profile"] = before.profile
        return await self._put(who, partner.model_copy(update=kept), before)

    async def enable(self, who: Identity, name: str, *, enabled: bool) -> Partner:
        """Let runs use a partner, also one that was stopped; or have all of them wait."""
        before = await self.get(who, name)
        changes: dict[str, Any] = {"enabled": enabled}
        if enabled:
            changes["stopped"] = None
        return await self._put(who, before.model_copy(update=changes), before)

    async def remove(
        self, who: Identity, name: str, versions: Collection[str] | None = None
    ) -> None:
        """Remove a record.

        Raises:
            NotFound: There is none.
            Conflict: It is of another version than those that the person has seen.
        """
        require_version(await self.get(who, name), versions)
        if not await self._store.remove(name):
            raise NotFound(f"there is no partner {name}")

    async def forget(self, who: Identity, name: str, print_: str) -> Partner:
        """Remove a host key or an OpenPGP key, by its fingerprint.

        Raises:
            NotFound: There is none.
        """
        partner = await self.get(who, name)
        hosts = tuple(each for each in partner.host_keys if fingerprint(each) != print_)
        keys = tuple(each for each in partner.keys if each.fingerprint != print_)
        if (len(hosts), len(keys)) == (len(partner.host_keys), len(partner.keys)):
            raise NotFound(f"{name} has no key {print_}")
        changed = partner.model_copy(update={"host_keys": hosts, "keys": keys})
        return await self._put(who, changed, partner)

    async def with_key(self, who: Identity, name: str, key: Mapping[str, Any]) -> Partner:
        """The record of a partner with an OpenPGP key, in place of one of its fingerprint.

        Nothing is saved: a worker that has the secrets reads the key first.

        Raises:
            InvalidRequest: A field is missing or wrong.
        """
        partner = await self.get(who, name)
        others = [each for each in partner.keys if each.fingerprint != key.get("fingerprint")]
        record = {
            **partner.model_dump(exclude=set(_OURS)),
            "keys": [*(each.model_dump() for each in others), dict(key)],
        }
        changed = _record(record)
        return partner.model_copy(update={"keys": changed.keys})

    async def _put(self, who: Identity, partner: Partner, before: Partner | None) -> Partner:
        named = partner.model_copy(update={"by": who.subject, "changed_at": datetime.now(UTC)})
        try:
            return await self._store.put(named, expected=before and before.revision)
        except RuleViolation as error:
            raise Conflict(str(error)) from None


class PartnerService(PartnerRecords):
    """What a worker does with partners, which has their secrets; a refusal is a `ServiceError`.

    Args:
        store: Keeps the records.
        places: Connects.
        openpgp: Reads keys.
    """

    def __init__(self, store: PartnerStore, places: Places, openpgp: GnuPg) -> None:
        super().__init__(store)
        self._places, self._openpgp = places, openpgp

    async def test(self, who: Identity, name: str, folder: str = "") -> PartnerReport:
        """Connect, and see what the endpoint can do; no file is moved.

        Args:
            who: Who asks.
            name: Of the partner.
            folder: Where a small file of our own is written and removed; empty: in the folder that
                the record names, or else in the root.
        """
        partner = await self.get(who, name)
        folder = folder or partner.probe_folder or ""
        sentences = list(_state(partner))
        # A partner that is stopped is tested to see whether it still has to be.
        asked = partner.model_copy(update={"stopped": None, "enabled": True})
        try:
            async with self._places.open(asked) as place:
                await place.ping()
                sentences += [_reached(partner), *await _seen(place, folder)]
                profile = await place.probe(folder)
                sentences += said_of_probe(partner, profile)
        except UnknownHostKey as error:
            return PartnerReport(False, (*sentences, *_unknown(error, name)), error.shown)
        except (PartnerAway, NotYet) as error:
            return PartnerReport(False, (*sentences, str(error)))
        except PortError as error:
            return PartnerReport(False, (*sentences, f"it refuses: {error}"))
        await self._put(who, partner.model_copy(update={"profile": profile}), partner)
        works = partner.stopped is None and partner.enabled and not spoils_transfers(profile)
        return PartnerReport(works, sentences)

    async def accept(
        self, who: Identity, name: str, expected: str, *, retire: bool = False
    ) -> Partner:
        """Pin the host key that a server shows, and let its runs continue.

        Args:
            who: Who has compared it with what the partner says.
            name: Of the partner.
            expected: Fingerprint of the key; another one is refused.
            retire: The keys that were pinned before are valid until today.

        Raises:
            Refused: The server shows another key, or has none.
        """
        partner = await self.get(who, name)
        if partner.kind is not PlaceKind.SFTP:
            raise Refused(f"{name} is not an SFTP server: it has no host key")
        key = await self._shown(partner)
        if fingerprint(key) != expected:
            raise Refused(f"{name} shows the host key {fingerprint(key)}, and not {expected}")
        today = datetime.now(UTC).date()
        others = [each for each in partner.host_keys if each.key != key.key]
        if retire:
            others = [each.model_copy(update={"valid_until": today}) for each in others]
        if len(others) >= HOSTS:
            raise Refused(f"{name} has {len(others)} host keys; remove one first")
        changes = {"host_keys": (*others, key), "stopped": None}
        return await self._put(who, partner.model_copy(update=changes), partner)

    async def shown_key(self, who: Identity, name: str) -> str:
        """Fingerprint of the host key that a server shows now."""
        return fingerprint(await self._shown(await self.get(who, name)))

    async def add_key(self, who: Identity, name: str, key: Mapping[str, Any]) -> str:
        """Add an OpenPGP key, in place of one with the same fingerprint.

        Returns:
            What is known of it: when it expires, or why this worker could not read it. Workers of
            other queues may have the secret.

        Raises:
            InvalidRequest: A field is missing or wrong, its text is that of another key, or a
                private key lacks what messages to it are decrypted with.
        """
        changed = await self.with_key(who, name, key)
        known = await self._key_facts(changed.keys[-1])
        if isinstance(known, PortError):
            is_elsewhere = changed.keys[-1].own and not isinstance(known, WrongKey)
            if not (is_elsewhere or isinstance(known, NotInstalled)):
                raise InvalidRequest(str(known))
            state = f"this worker cannot read it: {known}"
        else:
            _require_whole(known)
            state = _lasts(known)
        await self._put(who, changed, changed)
        return state

    async def key_lives(self, partner: Partner) -> Mapping[str, str]:
        """How long each OpenPGP key of a partner lasts, in words, by fingerprint."""
        states: dict[str, str] = {}
        for key in partner.keys:
            known = await self._key_facts(key)
            states[key.fingerprint] = str(known) if isinstance(known, PortError) else _lasts(known)
        return states

    async def _key_facts(self, key: OpenPgpKey) -> KeyInfo | PortError:
        """What a key says of itself; or why it cannot be read."""
        try:
            async with self._openpgp.open([key]) as ring:
                return ring.keys[0]
        except (Denied, Unavailable) as error:
            return error

    async def _shown(self, partner: Partner) -> HostKey:
        """The host key that a server shows."""
        asked = partner.model_copy(update={"stopped": None, "enabled": True, "host_keys": ()})
        try:
            async with self._places.open(asked):
                pass
        except UnknownHostKey as error:
            return HostKey(key=error.key)
        except PortError as error:
            raise Refused(f"{partner.name} cannot be asked for its key: {error}") from None
        raise Refused(f"{partner.name} shows no host key")


def _record(fields: Mapping[str, Any]) -> Partner:
    if ours := sorted(set(fields) & set(_OURS)):
        raise InvalidRequest(
            f"docflow sets {', '.join(map(repr, ours))} itself: remove it from the record"
            "; `write` says how files are written"
        )
    try:
        # `until` for `valid_until` would leave a key without an end.
        partner = Partner.model_validate(dict(fields), extra="forbid")
        check_record(partner)
    except ValidationError as error:
        # Values are left out: one may be a secret in the place of a reference.
        raise InvalidRequest("; ".join(_problems(error))) from None
    except RuleViolation as error:
        raise InvalidRequest(str(error)) from None
    return partner


def _lasts(key: KeyInfo) -> str:
    if key.revoked:
        return "it was revoked"
    if key.expires is not None and key.expires <= datetime.now(UTC):
        return f"it has expired on {key.expires:%Y-%m-%d}"
    when = "never expires" if key.expires is None else f"expires on {key.expires:%Y-%m-%d}"
    if key.secret and not key.decrypts:
        return f"it {when}, and decrypts nothing: no private key for encryption is in its text"
    return f"it {when}{'' if key.encrypts else ', and is not for encryption'}"


def _require_whole(key: KeyInfo) -> None:
    """Refuse a private key that was exported without its sub-key for encryption.

    Raises:
        InvalidRequest: It was.
    """
    if key.lacking and not key.decrypts:
        raise InvalidRequest(
            f"the text of the key {key.fingerprint} lacks the private part of its sub-key for "
            f"encryption, {', '.join(key.lacking)}: nothing that is encrypted to it could be "
            "decrypted; export it whole: gpg --armor --export-secret-keys FINGERPRINT"
        )


def _problems(error: ValidationError) -> Sequence[str]:
    sentences: list[str] = []
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        where = ".".join(map(str, each["loc"]))
        if each["type"] == "extra_forbidden":
            sentences.append(f"a partner has no field {where!r}")
            continue
        text = problem_text(each)
        if each["loc"] and each["loc"][-1] in ("password", "private_key", "passphrase", "token"):
            text = "must be a reference: env:NAME, file:PATH or aws:NAME, never the secret itself"
        sentences.append(f"{where}: {text}")
    return sentences


def _state(partner: Partner) -> Sequence[str]:
    sentences: list[str] = []
    if partner.stopped is not None:
        sentences.append(f"it is stopped: {partner.stopped}")
    if not partner.enabled:
        sentences.append("it is disabled: its runs wait")
    return sentences


def _reached(partner: Partner) -> str:
    if partner.kind is not PlaceKind.SFTP:
        return f"{partner.name} can be reached, and accepts us"
    pinned = len(valid_host_keys(partner, datetime.now(UTC).date()))
    return f"{partner.name} can be reached, accepts us, and shows one of {pinned} pinned host keys"


async def _seen(place: Place, folder: str) -> Sequence[str]:
    pattern = f"{folder}/*" if folder else "*"
    try:
        found = await place.list(pattern, _LISTED)
    except PortError as error:
        return [f"its files cannot be listed: {error}"]
    many = f"more than {_LISTED}" if len(found) > _LISTED else str(len(found))
    return [f"{folder or 'its root folder'} holds {many} files"]


def _unknown(error: UnknownHostKey, name: str) -> Sequence[str]:
    return (
        f"it shows the host key {error.shown}; {error.pinned}",
        "nothing was sent to it; compare the fingerprint with what the partner says, then: "
        f"docflow partner key add {name} --fingerprint {error.shown}",
    )
