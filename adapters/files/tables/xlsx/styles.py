"""Which cell formats of a workbook show numbers as dates."""

from collections.abc import Iterable

from adapters.files import limits
from adapters.files.tables.xlsx.values import Shown, number_format
from adapters.files.xml import XmlStream, parse
from adapters.ports import UnreadableDocument


def read_formats(blocks: Iterable[bytes]) -> list[Shown]:
    """What each cell format (`cellXfs` of the styles part, by index) makes of a number.

    Raises:
        UnreadableDocument: The part is damaged or hostile.
    """
    patterns: dict[int, str] = {}
    formats: list[int] = []
    within: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        within.append(name)
        if name == "numFmt" and within[-2:-1] == ["numFmts"] and len(patterns) < limits.STYLES:
            patterns[_int(attributes, "numFmtId")] = attributes.get("formatCode", "")[:512]
        elif name == "xf" and within[-2:-1] == ["cellXfs"]:
            if len(formats) >= limits.STYLES:
                raise UnreadableDocument(
                    f"the workbook holds more than {limits.STYLES:,} cell formats"
                )
            formats.append(_int(attributes, "numFmtId"))

    def end(name: str) -> None:
        within.pop()

    parse(blocks, XmlStream(start, end))
    return [number_format(code, patterns.get(code)) for code in formats]


def _int(attributes: dict[str, str], name: str) -> int:
    value = attributes.get(name, "0")
    return int(value) if value.isdecimal() and len(value) < 10 else 0
