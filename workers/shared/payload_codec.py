"""Encrypted payloads: without docflow's keys, Temporal stores values that nobody can read.

An encrypted payload names its key in its metadata and holds a nonce of 12 bytes, then what AES-GCM
makes of the whole payload. Temporal's own samples of a codec, in every language, have this form.
"""

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from temporalio.api.common.v1 import Payload
from temporalio.converter import EncodingPayloadConverter, PayloadCodec

from adapters.ports.errors import Denied, Unavailable
from workers.shared.errors import SettingsError, TemporalUnreachable, UnreadablePayload
from workers.shared.settings.payloads import PAYLOAD_KEYS, PayloadSettings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

ENCODING: Final = "binary/encrypted"
KEY_ID: Final = "encryption-key-id"
"""Entry of the metadata of an encrypted payload."""
_ENCODING: Final = "encoding"
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_KEY_BYTES: Final = 32
_LONGEST: Final = 64


class EncryptingCodec(PayloadCodec):
    """Encrypts payloads with one key, and decrypts those of every key that it has.

    Payloads in clear are decoded as they are: runs that began without encryption go on.

    Args:
        keys: 32 bytes each, by id; the first encrypts.
        encrypts: False: payloads are written in clear.
    """

    def __init__(self, keys: Mapping[str, bytes], *, encrypts: bool = True) -> None:
        # A hundredth of a second that processes without keys do not pay.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._ciphers = {id.encode(): AESGCM(key) for id, key in keys.items()}
        self.key_id = next(iter(keys), None) if encrypts else None
        """Of the key that encrypts; None: payloads are written in clear."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Encrypt payloads."""
        if self.key_id is None:
            return list(payloads)
        id = self.key_id.encode()
        return [_encrypted(payload, id, self._ciphers[id]) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Decrypt payloads; those in clear are returned as they are.

        Raises:
            UnreadablePayload: The key of one is not known, or the payload was changed.
        """
        return [
            self._decrypted(payload) if is_encrypted(payload) else payload for payload in payloads
        ]

    def _decrypted(self, payload: Payload) -> Payload:
        from cryptography.exceptions import InvalidTag

        cipher = self._ciphers.get(payload.metadata.get(KEY_ID, b""))
        if cipher is None:
            raise _unknown_key(payload)
        nonce, sealed = payload.data[:_NONCE_BYTES], payload.data[_NONCE_BYTES:]
        try:
            if len(sealed) < _TAG_BYTES:
                raise InvalidTag
            return Payload.FromString(cipher.decrypt(nonce, sealed, None))
        except InvalidTag:
            raise UnreadablePayload(
                f"a payload with the key {_id_of(payload)!r} is damaged, or {PAYLOAD_KEYS} has "
                "another key with that id"
            ) from None


def is_encrypted(payload: Payload) -> bool:
    """Whether a payload is one that a codec has encrypted."""
    return payload.metadata.get(_ENCODING) == ENCODING.encode()


def _encrypted(payload: Payload, id: bytes, cipher: "AESGCM") -> Payload:
    nonce = os.urandom(_NONCE_BYTES)
    return Payload(
        metadata={_ENCODING: ENCODING.encode(), KEY_ID: id},
        data=nonce + cipher.encrypt(nonce, payload.SerializeToString(), None),
    )


def _id_of(payload: Payload) -> str:
    return payload.metadata.get(KEY_ID, b"").decode(errors="replace")[:_LONGEST]


def _unknown_key(payload: Payload) -> UnreadablePayload:
    id = _id_of(payload)
    return UnreadablePayload(
        f"a payload is encrypted with the key {id!r}, which isn't in {PAYLOAD_KEYS}. Add the key "
        "to read the payload."
    )


class EncryptedPayloads(EncodingPayloadConverter):
    """Says what is missing if a process without keys meets an encrypted payload."""

    @property
    def encoding(self) -> str:
        """The encoding of encrypted payloads."""
        return ENCODING

    def to_payload(self, value: Any) -> Payload | None:
        """Make nothing: a codec encrypts what other converters make."""
        return None

    def from_payload(self, payload: Payload, type_hint: type[Any] | None = None) -> Any:
        """Refuse a payload.

        Raises:
            UnreadablePayload: Always.
        """
        raise _unknown_key(payload)


async def open_codec(environment: Mapping[str, str]) -> EncryptingCodec | None:
    """Look the keys up that the settings name.

    Args:
        environment: Settings, and keys that are variables.

    Returns:
        None: there are no keys, and payloads stand in clear.

    Raises:
        SettingsError: A key is missing, or is none.
        TemporalUnreachable: The service that keeps a key does not answer.
    """
    settings = PayloadSettings.read(environment)
    if not settings.references:
        return None
    # Loaded here so that processes without keys do not pay for it.
    from adapters.secrets import ReferencedSecrets
    from workers.shared.settings.aws import read_aws

    in_aws = any(each.startswith("aws:") for each in settings.references.values())
    # Whoever sets a process up chooses the files: none is out of bounds.
    secrets = ReferencedSecrets(
        environment, folders=[Path("/")], aws=read_aws(environment) if in_aws else None
    )
    keys: dict[str, bytes] = {}
    problems: list[str] = []
    for id, reference in settings.references.items():
        try:
            keys[id] = _key(await secrets.secret(reference))
        except Unavailable as error:
            raise TemporalUnreachable(f"{PAYLOAD_KEYS}, key {id}: {error}") from error
        except (Denied, ValueError) as error:
            problems.append(f"{PAYLOAD_KEYS}, key {id}: {error}")
    if problems:
        raise SettingsError(*problems)
    return EncryptingCodec(keys, encrypts=settings.encrypts)


def _key(text: str) -> bytes:
    """Read a key.

    Raises:
        ValueError: It is none; the message does not repeat it.
    """
    try:
        key = base64.b64decode(text.strip(), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise ValueError(
            f"must be {_KEY_BYTES} bytes in base64; `openssl rand -base64 {_KEY_BYTES}` makes one"
        )
    return key
