"""How workbooks are written: text is text, whatever it looks like."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

_TEXT_IS_TEXT: Final[Mapping[str, Any]] = MappingProxyType(
    {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
)


def in_memory() -> dict[str, Any]:
    """Options of a small workbook."""
    return {**_TEXT_IS_TEXT, "in_memory": True}


def row_by_row(folder: Path | str) -> dict[str, Any]:
    """Options of a workbook of any size.

    Args:
        folder: For temporary files.
    """
    return {**_TEXT_IS_TEXT, "constant_memory": True, "tmpdir": str(folder)}
