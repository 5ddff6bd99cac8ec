"""What people and timekeepers call countries, beside the names that the database has."""

import gettext
import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final

import pycountry

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
        178: "Republic of Congo|Congo Brazzaville|Republik Kongo|Kongo Brazzaville",
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
        756: "Switzerland|Suisse|Svizzera",
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
        704: "Vietnam",
    }
)
"""ISO number to names that neither ISO nor its translation knows."""


@cache
def _spellings() -> Mapping[int, Sequence[str]]:
    # The languages are given, so the environment is not asked for them.
    german = gettext.translation("iso3166-1", pycountry.LOCALES_DIR, languages=["de"])
    found: dict[int, list[str]] = {}
    for country in pycountry.countries:
        names = [
            getattr(country, kind)
            for kind in ("name", "official_name", "common_name")
            if hasattr(country, kind)
        ]
        number = int(country.numeric)
        found[number] = [
            *(country.alpha_2, country.alpha_3, country.numeric, str(number)),
            *names,
            *map(german.gettext, names),
            *_EVERYDAY.get(number, "").split("|"),
        ]
    for code, number in _OLYMPIC:
        found[int(number)].append(code)
    return found


def country_spellings(number: int) -> Sequence[str]:
    """Codes and names of a country.

    Args:
        number: ISO 3166-1 numeric code.

    Returns:
        ISO codes (the number with and without leading zeros), Olympic code, English and German
        names, names of every day; none for a number that ISO does not know.
    """
    return _spellings().get(number, ())
