"""Secrets kept out of logs: those that settings name, and what looks like one.

What is hidden:

1. The value of every secret setting, and of every key in it that is named like a secret
   (`AccountKey=`, `password` of an address, `"LOADER_PASSWORD": ` in JSON), whatever its length.
   One of fewer than 8 characters is hidden where it stands by itself, not within a longer word.
   Not hidden is a short one that the same setting also has in public, as a password or key that is
   its own user's name: it protects nothing, and the word would be missing from every sentence.
2. Other parts of a secret setting from 8 characters on, such as the values of a JSON object; parts
   of the path of an address from 16 on.
3. What looks like a secret in any text: queries and passwords of addresses, values of keys with
   secret names, authorisation headers, web tokens.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from workers.settings.check import declared_groups
from workers.settings.secrets import SecretFiles

HIDDEN: Final = "***"
SHORT: Final = 8
"""Shorter values are found within words that hold no secret."""
_TOKEN: Final = 16
"""Shorter parts of a path are words."""
_ELSEWHERE: Final = ("TEMPORAL_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
"""Secrets that no group of settings declares, because an SDK reads them."""
_KEYED: Final = r"[\w-]*(?:key|secret|signature|password|token|credential|\bsig)"
_LOOKS_SECRET: Final = (
    # What a presigned address or a webhook's token consists of stands behind the question mark.
    (re.compile(r"(\bhttps?://[^\s?\"'<>]+)\?[^\s\"'<>]+"), rf"\1?{HIDDEN}"),
    (re.compile(r"(\b[\w+.-]+://[^\s/:@]*):[^\s/@]+@"), rf"\1:{HIDDEN}@"),
    (re.compile(rf"(?i)\b({_KEYED}|pwd)=[^\s;&\"']+"), rf"\1={HIDDEN}"),
    (re.compile(rf"(?i)(\"(?:{_KEYED}|pwd)\"\s*:\s*)\"[^\"]+\""), rf'\1"{HIDDEN}"'),
    (re.compile(r"(?i)\b(password|pwd): [^\s;&\"']+"), rf"\1: {HIDDEN}"),
    (re.compile(r"(?i)\b(bearer|basic) [\w.~+/=-]{8,}"), rf"\1 {HIDDEN}"),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"), HIDDEN),
)


class Redaction:
    """Replaces secrets in texts.

    Args:
        secrets: Values that are never shown.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        parts = set[str]().union(*map(_hidden_of, secrets))
        # The longest first: one may be a part of another.
        ordered = sorted(parts, key=len, reverse=True)
        self._known = re.compile("|".join(map(_pattern, ordered))) if ordered else None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Redaction":
        """For the secrets of every setting that an environment has, from files too."""
        return cls(_secrets(environment))

    def __call__(self, text: str) -> str:
        """The text without secrets."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        for pattern, replacement in _LOOKS_SECRET:
            text = pattern.sub(replacement, text)
        return text


def _secrets(environment: Mapping[str, str]) -> Iterator[str]:
    declared = (each for group in declared_groups() for each in group.declared())
    names = {each.name for each in declared if each.setting.secret}
    files = SecretFiles(environment)
    for name in sorted(names.union(_ELSEWHERE)):
        try:
            value = files.value(name, environment.get(name, "").strip() or None)
        except ValueError:
            # Reported by what needs the setting.
            continue
        if value is not None:
            yield value


def _pattern(part: str) -> str:
    """Finds a part of a secret; a short one only where it stands by itself."""
    found = re.escape(part)
    return found if len(part) >= SHORT else rf"(?<!\w){found}(?!\w)"


def _hidden_of(secret: str) -> set[str]:
    """What of a secret setting is never shown."""
    named = {value for value in (secret, *_named_secrets(secret)) if value}
    shown = {value for value in named.intersection(_public(secret)) if len(value) < SHORT}
    return (named - shown).union(part for part in _other_parts(secret) if len(part) >= SHORT)


def _named_secrets(secret: str) -> Iterator[str]:
    """The values in a secret setting that its form names as secret."""
    if (address := _address(secret)) is not None and address.password:
        yield from (address.password, unquote(address.password))
    query = parse_qsl(address.query) if address is not None else ()
    for name, value in (*_texts_of(secret), *_pairs(secret), *query):
        if _is_named_secret(name):
            yield value


def _is_named_secret(name: str) -> bool:
    return re.fullmatch(f"(?i){_KEYED}|pwd", name) is not None


def _public(secret: str) -> Iterator[str]:
    """The words of an address or a connection string that are no secret."""
    if (address := _address(secret)) is not None:
        yield from (address.username or "", address.hostname or "", *address.path.split("/"))
    yield from (value for name, value in _pairs(secret) if not _is_named_secret(name))


def _other_parts(secret: str) -> Iterator[str]:
    if (address := _address(secret)) is not None:
        # Tokens of webhooks stand in the path.
        yield from (each for each in address.path.split("/") if len(each) >= _TOKEN)
        yield address.query
    yield from (value for _, value in _texts_of(secret))


def _address(secret: str) -> SplitResult | None:
    try:
        return urlsplit(secret) if "://" in secret else None
    except ValueError:
        return None


def _pairs(secret: str) -> Iterator[tuple[str, str]]:
    """Names and values of a connection string."""
    for part in secret.split(";"):
        name, _, value = part.partition("=")
        yield name.strip(), value


def _texts_of(secret: str) -> Iterator[tuple[str, str]]:
    """Names and values of a JSON object of texts."""
    if not secret.startswith("{"):
        return
    try:
        values = json.loads(secret)
    except ValueError:
        return
    yield from ((name, value) for name, value in values.items() if isinstance(value, str))
