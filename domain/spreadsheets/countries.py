"""What people and timekeepers call countries, beside the names that the database has."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final, NamedTuple

from domain.spreadsheets.fields import written
from domain.spreadsheets.match_keys import value_key
from domain.spreadsheets.similarity import NAME_WITH_MORE, Lookalikes
from domain.tabular.fields import normalise

_OLYMPIC: Final[Sequence[tuple[str, str]]] = tuple(
    re.findall(
        r"([A-Z]{3}) ([0-9]{3})",
        """
ALG 012 ANG 024 ANT 028 ARU 533 ASA 016 BAH 044 BAN 050 BAR 052 BER 060 BHU 064 BIZ 084 BOT 072
BRU 096 BUL 100 BUR 854 CAM 116 CAY 136 CGO 178 CHA 148 CHI 152 CRC 188 CRO 191 DEN 208 ESA 222
FIJ 242 GAM 270 GBS 624 GEQ 226 GER 276 GRE 300 GRN 308 GUA 320 GUI 324 HAI 332 HON 340 INA 360
IRI 364 ISV 850 IVB 092 KSA 682 KUW 414 LAT 428 LBA 434 LES 426 LIB 422 MAD 450 MAS 458 MAW 454
MGL 496 MON 492 MRI 480 MTN 478 MYA 104 NCA 558 NED 528 NEP 524 NGR 566 NIG 562 OMA 512 PAR 600
PHI 608 PLE 275 POR 620 PUR 630 ROM 642 RSA 710 SAM 882 SEY 690 SKN 659 SLO 705 SOL 090 SRI 144
SUD 729 SUI 756 TAN 834 TGA 776 TOG 768 TPE 158 TRI 780 UAE 784 URU 858 VAN 548 VIE 704 VIN 670
ZAM 894 ZIM 716
""",
    )
)
"""Codes of the International Olympic Committee that are not ISO codes, with the ISO number.

BRN is left out: it is Bahrain to the committee and Brunei to ISO, and ISO goes first.
"""

_EVERYDAY: Final[Mapping[int, str]] = MappingProxyType(
    {
        68: "Bolivia",
        96: "Brunei",
        104: "Burma|Birma",
        112: "Weißrussland|White Russia|Belorussia",
        132: "Cape Verde|Kapverden",
        180: "DR Congo|Congo Kinshasa|DR Kongo|Kongo Kinshasa|Democratic Republic of the Congo",
        178: "Congo|Kongo|Republic of Congo|Congo Brazzaville|Republik Kongo|Kongo Brazzaville",
        203: "Czech Republic|Tschechei",
        268: "Republic of Georgia",
        275: "Palestine|Palästina",
        336: "Vatican|Vatican City|Vatikan|Vatikanstadt|Holy See",
        344: "Hongkong|Hong Kong SAR",
        364: "Iran|Persien",
        384: "Ivory Coast|Elfenbeinküste",
        408: "North Korea|Nordkorea",
        410: "South Korea|Südkorea|Korea",
        418: "Laos",
        446: "Macau",
        498: "Moldova|Moldawien|Republik Moldau",
        528: "Holland|The Netherlands|NL",
        533: "Aruba",
        583: "Micronesia|Mikronesien",
        626: "East Timor|Osttimor",
        643: "Russia|Russland",
        659: "St. Kitts and Nevis",
        662: "St. Lucia",
        670: "St. Vincent and the Grenadines",
        748: "Swaziland|Swasiland",
        756: "Switzerland|Suisse|Svizzera|Schweizerische Eidgenossenschaft",
        760: "Syria|Syrien",
        784: "UAE|VAE|Emirates",
        792: "Turkey|Turkiye",
        807: "Macedonia|Mazedonien",
        826: (
            "UK|U.K.|Great Britain|Britain|England|Scotland|Wales|Northern Ireland|"
            "Großbritannien|Schottland|Nordirland"
        ),
        834: "Tanzania|Tansania",
        840: "USA|U.S.A.|US|U.S.|United States of America|America|Vereinigte Staaten|Amerika",
        862: "Venezuela",
        276: "BRD|Bundesrepublik Deutschland",
        40: "Republik Österreich",
        566: "Naija",
        704: "Vietnam",
    }
)
"""ISO number to names that neither ISO nor CLDR knows."""


def _own_names() -> Mapping[int, Sequence[str]]:
    found = {number: names.split("|") for number, names in _EVERYDAY.items()}
    for code, number in _OLYMPIC:
        found.setdefault(int(number), []).append(code)
    return {number: tuple(names) for number, names in found.items()}


_OWN_NAMES: Final[Mapping[int, Sequence[str]]] = MappingProxyType(_own_names())


_NAMES: Final = "country_names.tsv"
"""ISO number, codes of two and three letters, and what CLDR calls the country in all languages, as
far as no other country is called so; `tests/support/spreadsheets/country_names.py` writes it."""


def own_spellings(number: int) -> Sequence[str]:
    """What a country is called here beside the names of ISO and CLDR.

    Args:
        number: ISO 3166-1 numeric code.

    Returns:
        The number with and without leading zeros, Olympic codes, names of every day.
    """
    return (f"{number:03}", str(number), *_OWN_NAMES.get(number, ()))


class _Names(NamedTuple):
    """The countries by what people call them."""

    numbers: Mapping[str, int]
    """Key of each name."""
    codes: frozenset[str]
    """Of three letters, as ISO and the Olympic committee write them."""
    owners: Sequence[int]
    """Number of each name of `lookalikes`."""
    lookalikes: Lookalikes


@cache
def _names() -> _Names:
    numbers: dict[str, int] = {}
    codes = {code for code, _ in _OLYMPIC}
    texts: dict[str, int] = {}
    for line in (
        files("domain.spreadsheets").joinpath(_NAMES).read_text(encoding="utf-8").splitlines()
    ):
        number, _, alpha3, names = line.split("\t")
        codes.add(alpha3)
        for name in names.split("|"):
            for form in written(name):
                numbers[value_key(form)] = int(number)
                texts[normalise(form)] = int(number)
    for number, names in _OWN_NAMES.items():
        numbers.update((value_key(name), number) for name in names)
    return _Names(
        numbers, frozenset(codes), list(texts.values()), Lookalikes(texts, NAME_WITH_MORE)
    )


def country_named(name: str) -> int | None:
    """ISO number of the country that a name means in some language; no codes of ISO."""
    return _names().numbers.get(value_key(name))


def names_country(text: str) -> bool:
    """Whether a text is the name of a country, or its code of three capital letters."""
    return text.strip() in _names().codes or country_named(text) is not None


def countries_alike(name: str) -> Mapping[int, float]:
    """Countries with names that look like another, and how likely they are meant."""
    names = _names()
    found: dict[int, float] = {}
    for place, score in names.lookalikes.most_alike(normalise(name)):
        found.setdefault(names.owners[place], score)
    return found


def countries_beginning(text: str) -> Sequence[int]:
    """Numbers of the countries with a name that begins with a text, in some language; none for no
    text."""
    key = value_key(text)
    if not key:
        return ()
    return list(
        dict.fromkeys(number for name, number in _names().numbers.items() if name.startswith(key))
    )
