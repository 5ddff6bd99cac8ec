"""What GnuPG says of a message, line by line.

Source: doc/DETAILS of GnuPG, "Format of the --status-fd output".
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from adapters.ports import Denied, UnreadableDocument
from adapters.ports.transfer_files import Signature

_MARK: Final = "[GNUPG:] "
_UNKNOWN: Final = "of an unknown key"
_JUDGED: Final[Mapping[str, str]] = {
    "GOODSIG": "good",
    "BADSIG": "bad",
    "EXPSIG": "expired",
    "EXPKEYSIG": "of a key that has expired",
    "REVKEYSIG": "of a key that was revoked",
    "ERRSIG": _UNKNOWN,
}
_CANCELLED: Final = 99
"""Code of a question that was refused."""
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Signed:
    """One signature."""

    verdict: str
    key: str
    """Fingerprint of the primary key; of one that is unknown, whatever the message says."""
    signed_at: datetime | None = None


class Statuses:
    """The lines of one call.

    Args:
        printed: What it printed to the descriptor of statuses.
    """

    def __init__(self, printed: str) -> None:
        self.lines: list[Sequence[str]] = [
            line.removeprefix(_MARK).split()
            for line in printed.splitlines()
            if line.startswith(_MARK) and line != _MARK
        ]

    def __contains__(self, keyword: str) -> bool:
        return any(words[0] == keyword for words in self.lines if words)

    def of(self, keyword: str) -> Sequence[Sequence[str]]:
        """What stands behind a keyword, in each of its lines."""
        return [words[1:] for words in self.lines if words and words[0] == keyword]

    def signatures(self) -> Sequence[Signed]:
        """All signatures, in order."""
        found: list[Signed] = []
        for words in self.lines:
            if not words:
                continue
            keyword, *rest = words
            if keyword in _JUDGED:
                key = rest[6] if keyword == "ERRSIG" and len(rest) > 6 else (rest or ["?"])[0]
                found.append(Signed(_JUDGED[keyword], key))
            elif keyword == "VALIDSIG" and found and len(rest) > 2:
                when = int(rest[2]) if rest[2].isdecimal() else None
                found[-1] = Signed(
                    found[-1].verdict,
                    rest[9] if len(rest) > 9 else rest[0],
                    None if when is None else datetime.fromtimestamp(when, UTC),
                )
        return found

    def expected_signature(
        self, signers: Sequence[str], *, required: bool = True
    ) -> Signature | None:
        """The signature of one of the signers; None: there is none, and none is required.

        Raises:
            UnreadableDocument: One is bad: the bytes are not those that were signed.
            Denied: None is good and of an expected key.
        """
        signatures = self.signatures()
        if any(each.verdict == "bad" for each in signatures):
            raise UnreadableDocument("its signature is bad: it was changed after it was signed")
        for each in signatures:
            if each.verdict == "good" and each.signed_at is not None and each.key in signers:
                return Signature(each.key, each.signed_at)
        if not required:
            return None
        if not signatures:
            raise Denied("it is not signed, and a signature is required (RequireSignature)")
        seen = "; ".join(f"{each.key}: {each.verdict}" for each in signatures[:_SHOWN])
        raise Denied(f"it is not signed by an expected key with a valid signature ({seen})")

    def require_known_signers(self) -> None:
        """See that beside the expected signature there is none of a key that is not known.

        Raises:
            Denied: There is one, which GnuPG calls a failure of the whole message.
        """
        unknown = [each.key for each in self.signatures() if each.verdict == _UNKNOWN]
        if unknown:
            raise Denied(
                f"it is also signed by {', '.join(unknown[:_SHOWN])}, whose key is not known: add "
                "it to the keys of the partner; Signers says whose signature is required"
            )

    def require_unlocked(self) -> None:
        """See that GnuPG asked for no passphrase beyond those that it was given.

        Raises:
            Denied: It did.
        """
        for words in (*self.of("ERROR"), *self.of("FAILURE")):
            if len(words) > 1 and words[1].isdecimal() and int(words[1]) & 0xFFFF == _CANCELLED:
                raise Denied("the passphrase of a private key of ours is wrong or missing")

    def require_decrypted(self, lacking: Collection[str] = ()) -> None:
        """See that a message was decrypted with a key of ours and is as it was encrypted.

        Args:
            lacking: Ids of sub-keys of ours whose private part is missing.

        Raises:
            UnreadableDocument: It is not; the message says why.
        """
        if not {"DECRYPTION_OKAY", "END_DECRYPTION"} <= {words[0] for words in self.lines if words}:
            raise UnreadableDocument(self._why_not_decrypted(lacking))
        if "DECRYPTION_FAILED" in self or "BADMDC" in self:
            raise UnreadableDocument(_CHANGED)
        if not self.of("DECRYPTION_KEY"):
            raise UnreadableDocument(_SYMMETRIC)
        if len(self.of("PLAINTEXT")) != 1:
            raise UnreadableDocument("it holds several messages, and one is expected")
        aead = [info for info in self.of("DECRYPTION_INFO") if len(info) > 2 and info[2] != "0"]
        if "GOODMDC" not in self and not aead:
            raise UnreadableDocument(_UNPROTECTED)

    def require_signed_message(self) -> None:
        """See that it is one message that holds its signature and is not encrypted.

        Raises:
            UnreadableDocument: It is not; the message says why.
        """
        if "BEGIN_DECRYPTION" in self or "ENC_TO" in self or "NEED_PASSPHRASE_SYM" in self:
            raise UnreadableDocument("it is encrypted: Decrypt reads it, and requires a signature")
        if not self.signatures() or not self.of("PLAINTEXT"):
            raise UnreadableDocument(
                "it has no signature beside it, and is not a signed message itself"
            )
        if len(self.of("PLAINTEXT")) != 1:
            raise UnreadableDocument("it holds several messages, and one is expected")

    def _why_not_decrypted(self, lacking: Collection[str]) -> str:
        if "DECRYPTION_INFO" in self:
            unprotected = any(info[:1] == ["0"] for info in self.of("DECRYPTION_INFO"))
            return _UNPROTECTED if unprotected and "BADMDC" not in self else _CHANGED
        if recipients := [words[0] for words in self.of("ENC_TO") if words]:
            if ours := [each for each in recipients if each in lacking]:
                return (
                    f"it is encrypted to a key of ours whose text lacks the private part of "
                    f"{', '.join(ours[:_SHOWN])}: export that key whole"
                )
            return (
                "it is encrypted to other keys than ours: "
                f"{', '.join(recipients[:_SHOWN])} (ids of sub-keys)"
            )
        if "NEED_PASSPHRASE_SYM" in self:
            return _SYMMETRIC
        if "NEWSIG" in self or "GOODSIG" in self or "ERRSIG" in self or "PLAINTEXT" in self:
            return "it is not encrypted"
        return "it is not an OpenPGP message, or a damaged one"


_CHANGED: Final = "it was changed or cut off after it was encrypted (the integrity check failed)"
_UNPROTECTED: Final = (
    "it has no integrity protection, so that a change would not show; have it encrypted with MDC "
    "or AEAD"
)
_SYMMETRIC: Final = "it is encrypted with a passphrase, and not to a key of ours"
