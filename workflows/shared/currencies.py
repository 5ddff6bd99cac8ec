"""Currencies, as amounts of money name them."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

LONGEST: Final = 60
"""Characters of a number or date, with all that stands around it."""

CURRENCIES: Final = frozenset(
    (
        *("usd", "eur", "gbp", "chf", "cad", "aud", "nzd", "jpy", "cny", "inr", "aed", "sar"),
        *("qar", "kwd", "omr", "bhd", "nok", "sek", "dkk", "pln", "czk", "huf", "ron", "try"),
        *("zar", "brl", "mxn", "sgd", "hkd", "krw", "thb", "myr", "idr", "rub", "uah", "ils"),
        *("egp", "ngn", "kes", "bgn", "isk", "rsd", "twd", "vnd", "php", "clp", "uyu", "kzt"),
        *("tnd", "lkr", "pkr", "bdt", "jod", "iqd", "ghs", "tzs", "ugx", "xof", "xaf"),
    )
)
_CODES: Final = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN "
    "BWP BYN BZD CAD CDF CHF CLF CLP CNY COP CRC CUC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB "
    "EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IQD IRR ISK "
    "JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD "
    "MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR "
    "PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SLL SOS SRD SSP STN SVC SYP "
    "SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XAG "
    "XAU XCD XCG XDR XOF XPD XPF XPT YER ZAR ZMW ZWG ZWL"
)
ISO_4217: Final = frozenset(_CODES.split())
"""Codes of currencies and metals, with those that ended after 2020."""
_SIGN: Final = (
    r"(?:[A-Z]{1,3})?[$\u20ac\u00a3\u00a5\u20b9\u20bd]|[A-Z]{3}\b|SFr\.?|Fr\.|kr\.?|Rs\.?"
)
MONEY: Final = re.compile(
    rf"(?P<minus>[-\u2212+]?)\s*(?P<before>{_SIGN})?\s*(?P<inner>[-\u2212]?)\s*"
    rf"(?P<number>[0-9.,][0-9.,'\u2019\s]*?)(?P<cents>[.,][-\u2013\u2014]+|/-)?\s*(?P<after>{_SIGN})?(?P<trailing>-?)"
)
NAMES_CURRENCY: Final = re.compile(r"[^\W\d_]|[$\u20ac\u00a3\u00a5\u20b9\u20bd]")
"""What a text holds that names a currency, and a bare number does not."""
_MEANT: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "$": frozenset(
            (
                *("USD", "CAD", "AUD", "NZD", "SGD", "HKD", "MXN", "TWD", "ARS", "CLP", "COP"),
                *("UYU", "JMD", "BBD", "BSD", "BZD", "FJD", "NAD", "TTD", "XCD", "BMD", "KYD"),
            )
        ),
        "\u20ac": frozenset(("EUR",)),
        "\u00a3": frozenset(("GBP", "EGP")),
        "\u00a5": frozenset(("JPY", "CNY")),
        "\u20b9": frozenset(("INR",)),
        "\u20bd": frozenset(("RUB",)),
        "KR": frozenset(("NOK", "SEK", "DKK")),
    }
)
"""Sign to what it may stand for."""
_SPELLED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "US$": "USD",
        "C$": "CAD",
        "CA$": "CAD",
        "A$": "AUD",
        "AU$": "AUD",
        "HK$": "HKD",
        "NZ$": "NZD",
        "S$": "SGD",
        "R$": "BRL",
        "FR": "CHF",
        "SFR": "CHF",
        "RMB": "CNY",
        "RS": "INR",
        **dict.fromkeys(("EURO", "EUROS"), "EUR"),
        **dict.fromkeys(("DOLLAR", "DOLLARS", "D\u00d3LARES"), "$"),
        **dict.fromkeys(("FRANKEN", "FRANC", "FRANCS", "FRANCOS"), "CHF"),
        **dict.fromkeys(("KRONEN", "KRONER", "KRONOR"), "KR"),
        "STERLING": "GBP",
        "YEN": "JPY",
        "YUAN": "CNY",
        "ZLOTY": "PLN",
    }
)
"""Another spelling to the code or sign of what it may stand for."""
_BEST_KNOWN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "$": "USD",
        "\u20ac": "EUR",
        "\u00a3": "GBP",
        "\u00a5": "JPY",
        "\u20b9": "INR",
        "\u20bd": "RUB",
    }
)
_NAME: Final = 4
"""Letters from which on a word that names a currency is no abbreviation."""
_WORD: Final = re.compile(r"(?:US|CA?|AU?|HK|NZ|R|S)?\$|[\u20ac\u00a3\u00a5\u20b9\u20bd]|[^\W\d_]+")


def is_money(found: re.Match[str], own: str | None = None) -> bool:
    """Whether what stands around the number of an amount is one currency; `own` is known."""
    signs = [sign for sign in (found["before"], found["after"]) if sign]
    return len(signs) <= 1 and all(
        not sign.isalpha() or sign.lower() in CURRENCIES or len(sign) == 2 or sign in ("SFr", own)
        for sign in signs
    )


def currency_of(cell: str, own: str | None = None) -> str | None:
    """The currency that a text of an amount names, in capitals; None: it names none.

    Args:
        cell: The text.
        own: A currency that is known beside the common ones.
    """
    if not NAMES_CURRENCY.search(cell) or len(cell) > LONGEST:
        return None
    found = MONEY.fullmatch(cell.strip().strip("()").strip())
    if found is None or not is_money(found, own):
        return None
    sign = found["before"] or found["after"]
    return sign.rstrip(".").upper() if sign else None


def is_currency(word: str) -> bool:
    """Whether a word of a title, in small letters, is a currency: `chf`, `euro`."""
    return word in CURRENCIES or (len(word) >= _NAME and word.upper() in _SPELLED)


def currencies_in(text: str, own: str) -> list[str]:
    """The currencies that words and signs of a title name, in capitals.

    Args:
        text: What stands beside the name of a field.
        own: Code of the currency of the field.
    """
    words = _WORD.findall(text.upper())
    return [
        each
        for each in words
        if each == own or each.lower() in CURRENCIES or each in _SPELLED or not each.isalpha()
    ]


def code_of(name: str) -> str:
    """The code of a currency's name or sign, in capitals; of a shared sign the best known one."""
    return _BEST_KNOWN.get(spelled := _SPELLED.get(name, name), spelled)


def same_currency(one: str, other: str) -> bool:
    """Whether two names of currencies, in capitals, may mean one: `$` and `CAD`."""
    one, other = _SPELLED.get(one, one), _SPELLED.get(other, other)
    return one == other or other in _MEANT.get(one, ()) or one in _MEANT.get(other, ())
