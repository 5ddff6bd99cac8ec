"""What makes two headers, or two values, the same thing to remember."""

import unicodedata


def header_key(header: str) -> str:
    """A header without case, accents, spaces and punctuation, however it was normalised before."""
    plain = unicodedata.normalize("NFKD", header.casefold())
    return "".join(filter(str.isalnum, plain)) or value_key(header)


def value_key(value: str) -> str:
    """A value without case and needless spaces; signs count: `A+` and `A-` are two things."""
    return " ".join(value.split()).casefold()
