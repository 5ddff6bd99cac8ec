"""The language of a page: which one a request asks for, and its catalogue.

A further language is a further file `locale/<language>/LC_MESSAGES/docflow.po`. English is the
language of the source and has none. The language belongs to a request, as a context variable: two
requests that are answered at the same time never see each other's.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from babel import Locale
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from markupsafe import Markup

from workers.gateway.http.accept import quality

LOCALE: Final = Path(__file__).parent / "locale"
CATALOGUE: Final = Path("LC_MESSAGES", "docflow.po")
_LONGEST: Final = 1_000
"""Characters of an `Accept-Language` that are read."""


@dataclass(frozen=True, slots=True)
class Language:
    """A language that pages can have.

    Attributes:
        code: As HTML and HTTP call it (BCP 47).
        locale: How it writes numbers and dates.
        catalogue: Its messages.
    """

    code: str
    locale: Locale
    catalogue: NullTranslations


# Numbers and dates as the sentences around them: 12,345 and 23 Nov 2026.
ENGLISH: Final = Language("en", Locale("en", "GB"), NullTranslations())
_CURRENT: Final[ContextVar[Language]] = ContextVar("language", default=ENGLISH)


@cache
def languages() -> Mapping[str, Language]:
    """Every language by its code in lower case; read once."""
    found = {ENGLISH.code: ENGLISH}
    for path in sorted(LOCALE.glob(f"*/{CATALOGUE}")):
        name = path.relative_to(LOCALE).parts[0]
        locale = Locale.parse(name)
        code = name.replace("_", "-")
        found[code.lower()] = Language(code, locale, _read(path))
    return found


def _read(path: Path) -> GNUTranslations:
    compiled = BytesIO()
    with path.open("rb") as file:
        write_mo(compiled, read_po(file, abort_invalid=True))
    compiled.seek(0)
    return GNUTranslations(compiled)


def negotiated(header: str) -> Language:
    """The language of pages that a browser likes best; English where it likes none of ours.

    Args:
        header: `Accept-Language` (RFC 9110, 12.5.4): `de-AT, de;q=0.9, en;q=0.5`.
    """
    known = languages()
    wanted: list[tuple[float, str]] = []
    for item in header[:_LONGEST].split(","):
        tag, _, parameter = item.partition(";")
        wanted.append((quality(parameter), tag.strip().lower()))
    for weight, tag in sorted(wanted, key=lambda each: -each[0]):
        if weight <= 0:
            break
        if tag == "*":
            return ENGLISH
        while tag:
            if tag in known:
                return known[tag]
            tag = tag.rpartition("-")[0]
    return ENGLISH


@contextmanager
def speaking(language: Language) -> Generator[None]:
    """Answer in a language, for as long as the block takes."""
    token = _CURRENT.set(language)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def language() -> Language:
    """The language of the request that is being answered."""
    return _CURRENT.get()


def N_(message: str) -> str:
    """Mark a message for the catalogues that `localised` translates where it is shown."""
    return message


def localised(text: str) -> str:
    """A text from a declaration in the language of the request; as it is where none has it."""
    # The catalogue's own header stands under the empty message.
    return language().catalogue.gettext(text) if text else text


def gettext(message: str, **values: object) -> str:
    """A message in the language of the request.

    Args:
        message: In English, as a literal, with `%(name)s` for each value.
        values: Of its placeholders.
    """
    text = language().catalogue.gettext(message)
    return text % values if values else text


def counted(one: str, many: str, count: int, **values: object) -> str:
    """A message about a number of things; `%(count)s` is written as the language writes numbers."""
    text = language().catalogue.ngettext(one, many, count)
    return text % {"count": number(count), **values}


def number(value: int | None) -> str:
    """Digits in groups of three, as in 12,345."""
    if value is None:
        return "–"  # noqa: RUF001 - a dash for "not known yet"
    symbol = language().locale.number_symbols["latn"]["group"]
    return f"{value:,}".replace(",", symbol)


def template_names() -> Mapping[str, Any]:
    """What templates use: values are escaped, messages are ours and may hold markup."""

    def translate(message: str, **values: object) -> Markup:
        text = Markup(language().catalogue.gettext(message))  # noqa: S704 - literals of templates
        return text % values if values else text

    def count(one: str, many: str, count: int, **values: object) -> Markup:
        text = Markup(language().catalogue.ngettext(one, many, count))  # noqa: S704
        return text % {"count": number(count), **values}

    return {"_": translate, "counted": count, "language": language}
