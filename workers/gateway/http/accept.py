"""What a client would rather have (RFC 9110, 12.4.2 and 12.5.1)."""

from typing import Final

_LONGEST: Final = 1_000
"""Characters of an `Accept` that are read."""
_PAGES: Final = ("text/html", "text/*", "*/*")
_PROBLEMS: Final = ("application/problem+json", "application/json", "application/*", "*/*")
"""Media ranges that a type is in, the one that says most first."""


def quality(parameters: str) -> float:
    """The quality of an item of a header: 0.8 of `q=0.8`, 1 where none is given, else 0."""
    name, _, value = parameters.partition("=")
    if not name.strip():
        return 1.0
    try:
        found = float(value)
    except ValueError:
        return 0.0
    return found if name.strip().lower() == "q" and 0 <= found <= 1 else 0.0


def prefers_page(header: str) -> bool:
    """Whether a client takes HTML rather than JSON, as browsers do that open an address.

    A type that is named comes before one that a wildcard allows with the same quality. Who takes
    anything, or both alike, is a program.

    Args:
        header: `Accept`: `text/html,application/xml;q=0.9,*/*;q=0.8`.
    """
    ranges: dict[str, float] = {}
    for item in header[:_LONGEST].split(","):
        name, *parameters = (part.strip().lower() for part in item.split(";"))
        weight = next((each for each in parameters if each.startswith("q=")), "")
        ranges[name] = quality(weight)
    page = _best(ranges, _PAGES)
    return page[0] > 0 and page > _best(ranges, _PROBLEMS)


def _best(ranges: dict[str, float], names: tuple[str, ...]) -> tuple[float, bool]:
    """Quality of a type, and whether more than `*/*` names it."""
    found = next((name for name in names if name in ranges), None)
    return (0.0, False) if found is None else (ranges[found], found != "*/*")
