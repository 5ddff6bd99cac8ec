"""Codes that differ only in leading zeros: `123` of one file and `00123` of another."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, Final

from domain.errors import InvalidDocument
from domain.imports.chunks import RowChunk
from domain.imports.tables import TableSpec
from domain.tabular.fields import ColumnKind

QUESTION: Final = "leading_zeros"
"""What the answer is remembered as."""
DISTINCT: Final = "distinct"
"""The answer that codes which differ in leading zeros only are different ones."""
_ZEROS: Final = re.compile(r"^0+(?=[0-9])")

Codes = tuple[str, ...]
"""The codes of a natural key, in the order of the table."""


def code_fields(spec: TableSpec) -> tuple[str, ...]:
    """The fields of a key that hold codes."""
    return tuple(name for name in spec.key if spec.by_name[name].kind is ColumnKind.CODE)


def folded(codes: Codes) -> Codes:
    """The same for codes that differ only in leading zeros."""
    return tuple(_ZEROS.sub("", code) for code in codes)


def code_columns(chunk: RowChunk, names: Sequence[str]) -> list[list[str]]:
    """The codes of a chunk by column."""
    places = [chunk.columns.index(name) for name in names]
    return [list(map(str, map(itemgetter(place), chunk.rows))) for place in places]


def codes_of(chunk: RowChunk, names: Sequence[str]) -> list[Codes]:
    """The codes of each row of a chunk."""
    return list(zip(*code_columns(chunk, names), strict=True))


def spellings(codes: Iterable[Codes], lengths: Iterable[int]) -> list[str]:
    """First codes under which the known ones may stand that differ in leading zeros only.

    Args:
        codes: Codes of a file.
        lengths: Of first codes of the table, where some code has leading zeros.
    """
    found: set[str] = set()
    for first in dict.fromkeys(each[0] for each in codes):
        (plain,) = folded((first,))
        found |= {first, plain}
        if plain[:1].isdigit():
            found.update(plain.zfill(length) for length in lengths)
    return sorted(found)


def lookalikes(found: Iterable[Codes], known: Mapping[Codes, bool]) -> dict[Codes, Codes]:
    """Codes of a file to the known ones that differ from them only in leading zeros.

    Args:
        found: Codes of the file.
        known: Codes of the table, and whether this load has written each; a code of the file that
            is among them is not a question.
    """
    candidates = sorted((codes for codes, is_own in known.items() if not is_own), reverse=True)
    by_fold = {folded(codes): codes for codes in candidates}
    return {
        codes: other
        for codes in dict.fromkeys(found)
        if codes not in known and (other := by_fold.get(folded(codes))) is not None
    }


def may_differ(columns: Iterable[Sequence[str]], lengths: Collection[int]) -> bool:
    """Whether codes of a file and of its table may differ in leading zeros only.

    Args:
        columns: Codes of the file by column.
        lengths: See `spellings`.
    """
    # Codes hold no line breaks, and one search in all of a column is quick.
    return bool(lengths) or any("\n0" in "\n" + "\n".join(column) for column in columns)


def settled(
    chunk: RowChunk, names: Sequence[str], known: Mapping[Codes, bool], answer: str | None
) -> RowChunk:
    """A chunk with its codes as they are known.

    Args:
        chunk: Rows of the file.
        names: Columns of the codes.
        known: See `lookalikes`.
        answer: What a person said about codes that differ in leading zeros only.

    Raises:
        InvalidDocument: There are some, and no person has said whether they are the same.
    """
    alike = lookalikes(codes_of(chunk, names), known)
    if not alike:
        return chunk
    if answer is None:
        raise InvalidDocument(_question(chunk, names, alike))
    return _with_known_codes(chunk, names, alike)


def _with_known_codes(
    chunk: RowChunk, names: Sequence[str], same: Mapping[Codes, Codes]
) -> RowChunk:
    """A chunk whose codes are spelled as the known ones.

    Raises:
        InvalidDocument: It holds several spellings of one.
    """
    places = [chunk.columns.index(name) for name in names]
    found = codes_of(chunk, names)
    _refuse_both(found, same)
    rows: list[tuple[Any, ...]] = []
    for row, codes in zip(chunk.rows, found, strict=True):
        known = same.get(codes)
        if known is not None:
            spelled = dict(zip(places, known, strict=True))
            row = tuple(spelled.get(place, value) for place, value in enumerate(row))
        rows.append(row)
    return replace(chunk, rows=rows)


def _refuse_both(found: Collection[Codes], same: Mapping[Codes, Codes]) -> None:
    spelled: dict[Codes, Codes] = {}
    for codes in sorted(set(found), reverse=True):
        other = spelled.setdefault(same.get(codes, codes), codes)
        if other != codes:
            raise InvalidDocument(
                f"the document holds both {_shown(other)} and {_shown(codes)}, which are "
                "the same here; keep one of them"
            )


def _question(chunk: RowChunk, names: Sequence[str], alike: Mapping[Codes, Codes]) -> str:
    """What a person is asked."""
    lines = zip(chunk.lines, codes_of(chunk, names), strict=True)
    line, codes = next(each for each in lines if each[1] in alike)
    more = f", as do {len(alike) - 1:,} more" if len(alike) > 1 else ""
    return (
        f"{_shown(codes)} on line {line} and the known {_shown(alike[codes])} differ only in "
        f"leading zeros{more}: retry with `leading_zeros` 'same' or 'distinct' "
        "(--leading-zeros same); the answer is remembered for the project and type"
    )


def _shown(codes: Codes) -> str:
    return " ".join(repr(code) for code in codes if code)
