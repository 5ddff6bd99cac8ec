"""Secrets kept out of logs: those that settings name, and what looks like one."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

from workers.settings.check import declared_groups
from workers.settings.secrets import SecretFiles

HIDDEN: Final = "***"
SHORTEST: Final = 8
"""Shorter values would be found in words that hold no secret."""
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
        parts = {part for secret in secrets for part in _parts(secret) if len(part) >= SHORTEST}
        # The longest first: one may be a part of another.
        ordered = sorted(parts, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, ordered))) if ordered else None

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


def _parts(secret: str) -> Iterator[str]:
    """A secret as a whole, and what of it is secret by itself."""
    yield secret
    if "://" in secret:
        try:
            parts = urlsplit(secret)
        except ValueError:
            return
        if parts.password:
            yield from (parts.password, unquote(parts.password))
        # Tokens of webhooks stand in the path.
        yield from (each for each in parts.path.split("/") if len(each) >= _TOKEN)
        yield parts.query
    if secret.startswith("{"):
        yield from _texts_of(secret)
    for part in secret.split(";"):
        name, _, value = part.partition("=")
        if re.fullmatch(f"(?i){_KEYED}", name.strip()):
            yield value


def _texts_of(secret: str) -> Iterator[str]:
    """The values of a JSON object of texts."""
    try:
        values = json.loads(secret)
    except ValueError:
        return
    yield from (value for value in values.values() if isinstance(value, str))
