"""Remarks on a transfer: what is shown of many says how many more there are."""

from collections.abc import Sequence
from typing import Final

from contracts.transfers import REMARKS

_SENTENCE: Final = 500
_MORE: Final = "more remarks"


def first_of(remarks: Sequence[str], more: str = _MORE) -> tuple[str, ...]:
    """As many remarks as a result holds, each once; the last one says how many more there are.

    Args:
        remarks: All of them; each is cut to a sentence of 500 characters.
        more: What the others are called, after their number.
    """
    distinct = list(dict.fromkeys(remark[:_SENTENCE] for remark in remarks))
    if len(distinct) > REMARKS:
        distinct[REMARKS - 1 :] = [_and_more(len(distinct) - REMARKS + 1, more)]
    return tuple(distinct)


def in_one_sentence(remarks: Sequence[str]) -> str:
    """Remarks, one after the other, in 500 characters; the end says how many more there are."""
    for shown in range(len(remarks), 0, -1):
        others = [_and_more(len(remarks) - shown, _MORE)] if shown < len(remarks) else []
        text = "; ".join([*remarks[:shown], *others])
        if len(text) <= _SENTENCE:
            return text
    end = f"; {_and_more(len(remarks) - 1, _MORE)}" if len(remarks) > 1 else ""
    return "".join(remarks[:1])[: _SENTENCE - len(end)] + end


def _and_more(number: int, more: str) -> str:
    return f"and {number:,} {more.removesuffix('s') if number == 1 else more}"
