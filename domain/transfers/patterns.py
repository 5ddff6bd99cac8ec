"""Patterns of rules: text in which `*` stands for any characters, or none."""

from typing import Final

ANY: Final = "*"


def is_exact(pattern: str) -> bool:
    """Whether a pattern is matched by itself alone."""
    return ANY not in pattern


def literals(pattern: str) -> list[str]:
    """The texts between its asterisks, in order; the first and the last may be empty."""
    return pattern.split(ANY)


def specificity(pattern: str) -> tuple[int, int]:
    """How much a pattern says: exact before patterns, patterns by their number of characters."""
    if is_exact(pattern):
        return 2, 0
    size = len(pattern.replace(ANY, ""))
    return (1, size) if size else (0, 0)


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern takes a text; in time that grows with both lengths, not faster."""
    parts = literals(pattern)
    if len(parts) == 1:
        return pattern == text
    first, *middle, last = parts
    if len(text) < len(first) + len(last):
        return False
    if not (text.startswith(first) and text.endswith(last)):
        return False
    position, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True


def overlap(one: str, other: str) -> bool:
    """Whether some text is taken by both patterns."""
    if not (_begin_alike(one, other) and _begin_alike(one[::-1], other[::-1])):
        return False
    # Which beginnings of `other` can be reached with the beginning of `one` that was read so far:
    # both are read as expressions over the same unknown text.
    reached = _after_asterisks({0}, other)
    for character in one:
        if character == ANY:
            # Takes any text, so `other` may be read on from wherever it is.
            reached = set[int](range(min(reached, default=len(other) + 1), len(other) + 1))
            continue
        step = {at for at in reached if at < len(other) and other[at] == ANY}
        step |= {at + 1 for at in reached if at < len(other) and other[at] == character}
        reached = _after_asterisks(step, other)
    return len(other) in reached


def _begin_alike(one: str, other: str) -> bool:
    """Whether one text may begin as both patterns say."""
    first, second = one.partition(ANY)[0], other.partition(ANY)[0]
    return first.startswith(second) or second.startswith(first)


def _after_asterisks(reached: set[int], pattern: str) -> set[int]:
    """The same, with asterisks that stand for nothing skipped."""
    out = set(reached)
    for at in sorted(reached):
        while at < len(pattern) and pattern[at] == ANY:
            at += 1
            out.add(at)
    return out
