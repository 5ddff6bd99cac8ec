"""Assignments of people: none lasts into the next one of the same person.

If an employee has a row with a later `valid_from`, the earlier row ends the day before at the
latest. That holds after every chunk, whichever rows came first.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Final

_DAY: Final = timedelta(days=1)

Person = tuple[str, str]
"""Project and employee number."""
Term = tuple[str, str, date]
"""Natural key: project, employee number and first day."""


@dataclass
class Assignments:
    """What is stored about some employees: first day to last day."""

    ends: dict[Term, date | None] = field(default_factory=dict[Term, date | None])

    def starts(self, more: Sequence[Term]) -> Mapping[Person, list[date]]:
        """First days by person, in order; assignments that never began do not count."""
        starts: defaultdict[Person, set[date]] = defaultdict(set)
        for project, person, start in more:
            starts[project, person].add(start)
        for (project, person, start), end in self.ends.items():
            if end is None or end >= start:
                starts[project, person].add(start)
        return {person: sorted(days) for person, days in starts.items()}


def end_before_next(
    terms: Sequence[Term], ends: Sequence[date | None], stored: Assignments
) -> tuple[list[date | None], dict[Term, date]]:
    """End each assignment before the next of the same person.

    Args:
        terms: The assignments that come in.
        ends: Their last days as given; None: open.
        stored: What is stored about their people.

    Returns:
        The last days that they may have, and the new last days of stored assignments that are
        not among them.
    """
    new = set(terms)
    others = Assignments({term: end for term, end in stored.ends.items() if term not in new})
    given = zip(terms, ends, strict=True)
    starts = others.starts([term for term, end in given if end is None or end >= term[2]])
    bounded = [_bounded(term, end, starts) for term, end in zip(terms, ends, strict=True)]
    closed: dict[Term, date] = {}
    for term, end in stored.ends.items():
        bound = _bounded(term, end, starts)
        if term not in new and bound is not None and bound != end:
            closed[term] = bound
    return bounded, closed


def _bounded(term: Term, end: date | None, starts: Mapping[Person, list[date]]) -> date | None:
    project, person, start = term
    days = starts.get((project, person), [])
    later = bisect_right(days, start)
    if later == len(days):
        return end
    last = days[later] - _DAY
    return last if end is None or end > last else end
