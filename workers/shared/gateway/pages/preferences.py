"""What a person chooses for their browser: language, colours, one organisation, shortcuts."""

from dataclasses import dataclass
from typing import Final, Literal, Self
from urllib.parse import parse_qsl, urlencode

from fastapi import Request

from workers.shared.gateway.pages.renderer import Language, languages, negotiated
from workers.shared.services.identity import Identity

PREFERENCES: Final = "docflow_preferences"
"""Name of the cookie; it says nothing about a person, and pages read it before they sign in."""
_LONGEST: Final = 200
_MOST: Final = 10
_DIGITS: Final = 16
Colours = Literal["light", "dark"]
COLOURS: Final[tuple[Colours, ...]] = ("light", "dark")


@dataclass(frozen=True, slots=True)
class Preferences:
    """The choices of one browser."""

    language: str | None = None
    """Code of one of ours; None: the one that the browser asks for."""
    colours: Colours | None = None
    """None: those of the system."""
    organisation: int | None = None
    """Lists show its things alone; None: those of all organisations."""
    shortcuts: bool = True
    """Single keys of the keyboard do something."""

    @classmethod
    def read(cls, text: str) -> Self:
        """The choices that a cookie or a form holds; what is none of ours counts as not chosen."""
        try:
            given = dict(parse_qsl(text[:_LONGEST], max_num_fields=_MOST))
        except ValueError:
            return cls()
        language, colours = given.get("language", ""), given.get("colours", "")
        organisation = given.get("organisation", "")
        is_id = organisation.isascii() and organisation.isdecimal() and len(organisation) < _DIGITS
        return cls(
            language if language in languages() else None,
            colours if colours in COLOURS else None,
            int(organisation) if is_id else None,
            given.get("shortcuts") != "off",
        )

    def __str__(self) -> str:
        """What `read` reads."""
        chosen = {
            "language": self.language,
            "colours": self.colours,
            "organisation": self.organisation,
            "shortcuts": None if self.shortcuts else "off",
        }
        return urlencode({name: value for name, value in chosen.items() if value is not None})

    def narrowed(self, who: Identity) -> Identity:
        """A person whose lists show the chosen organisation alone, if it is one of theirs."""
        if self.organisation is None or self.organisation not in who.organisations:
            return who
        return who.within(self.organisation)


def preferences_of(request: Request) -> Preferences:
    """The choices of the browser that asks."""
    return Preferences.read(request.cookies.get(PREFERENCES, ""))


def language_of(request: Request) -> Language:
    """The language that a browser has chosen, or else asks for."""
    chosen = preferences_of(request).language
    if chosen is not None:
        return languages()[chosen]
    return negotiated(request.headers.get("Accept-Language", ""))
