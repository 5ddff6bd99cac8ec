"""Rules that say which queue takes an event.

Which rule takes an event: exact as in the system that docflow replaces, patterns and priorities
beside it.

Of the enabled rules that match, the one of the highest priority wins; among equal ones the most
specific: attributes are compared in the order account, source, type, subject, an exact one before a
pattern, a longer pattern before a shorter one. Two rules that could both win are a tie, which is
refused when a rule is added; one that stands in a table all the same is broken by the order of
their queues and names, and reported.
"""

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple

from pydantic import Field

from workflows.shared.contracts import Contract, Person, served
from workflows.shared.errors import RuleViolation
from workflows.transfers.events import Attribute, QueueName, RouteKey, RuleName, Sentence

ANY: Final = "*"
"""In an attribute of a rule: any characters, or none."""


class RouteRule(Contract):
    """One row of `jobconfig`: `PartitionKey` is the queue, `RowKey` the rule."""

    queue: Annotated[QueueName, served("The queue that takes the event", "orders")]
    rule: Annotated[RuleName, served("Its name; unique within the queue", "1")]
    account_id: Annotated[
        Attribute, served("`accountId` of the event; `*` stands for any characters", "TMS001")
    ] = ANY
    source: Annotated[Attribute, served("Source of the event", "TMS.*")] = ANY
    type: Annotated[Attribute, served("Type of the event", "Succeeded")] = ANY
    subject: Annotated[Attribute, served("Subject of the event", "File Upload")] = ANY
    priority: Annotated[int, served("The highest wins; among equal ones the most specific", 0)] = (
        Field(default=0, ge=-1_000, le=1_000)
    )
    enabled: Annotated[bool, served("It takes events", True)] = True
    by: Annotated[Person | None, served("Who changed it last", "ann")] = None
    changed_at: Annotated[datetime | None, served("When", "2026-01-03T10:00:00Z")] = None


class RouteRemark(Contract):
    """Why a rule did not take an event."""

    queue: Annotated[QueueName, served("The queue of the rule", "orders")]
    rule: Annotated[RuleName, served("Its name", "2")]
    reason: Annotated[Sentence, served("Why it takes no event, or not this one", "it is disabled")]


class RouteVerdict(Contract):
    """What the rules say about an event."""

    winner: Annotated[RouteRule | None, served("The rule that takes it; null: none", None)] = None
    others: Annotated[
        tuple[RouteRemark, ...], served("The nearest of the others, each with its reason", [])
    ] = Field(default=(), max_length=10)
    rules: Annotated[int, served("How many rules there are", 12)] = 0


def require_unchanged(found: RouteRule | RouteRemark | None, expected: RouteRule) -> None:
    """Refuse a change of a rule that is not as the person who changes it has seen it.

    Raises:
        RuleViolation: It is another one, or gone.
    """
    if found != expected:
        raise RuleViolation(
            f"rule {expected.rule} of queue {expected.queue} was changed meanwhile: look at it "
            "again"
        )


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


ATTRIBUTES: Final = ("account_id", "source", "type", "subject")
"""Of rules and events, in the order in which they decide."""
LABELS: Final = MappingProxyType(
    {
        "account_id": "accountId",
        "source": "source",
        "type": "type",
        "subject": "subject",
    }
)
"""As events name them."""
_OTHERS: Final = 10

Rank = tuple[int, tuple[tuple[int, int], ...]]
_Values = tuple[str, ...]


def rank(rule: RouteRule) -> Rank:
    """The higher of two matching rules wins."""
    return rule.priority, tuple(specificity(getattr(rule, name)) for name in ATTRIBUTES)


def takes(rule: RouteRule, key: RouteKey) -> bool:
    """Whether the patterns of a rule match an event."""
    return all(matches(getattr(rule, name), getattr(key, name)) for name in ATTRIBUTES)


def can_tie(one: RouteRule, other: RouteRule) -> bool:
    """Whether some event would be taken by both, with nothing to say which of them wins."""
    return (
        one.enabled
        and other.enabled
        and (one.queue, one.rule) != (other.queue, other.rule)
        and rank(one) == rank(other)
        and all(overlap(getattr(one, name), getattr(other, name)) for name in ATTRIBUTES)
    )


class _Anchor(NamedTuple):
    """A text that a value has to hold for a rule to take it."""

    place: int
    """Of the attribute."""
    where: int
    """Where in the value: `_START`, `_END` or `_WITHIN`."""
    text: str


_START, _END, _WITHIN = range(3)


@dataclass(slots=True)
class _Bucket:
    """Rules of the same exact values."""

    plain: list[int] = field(default_factory=list[int])
    """Those whose other attributes take anything."""
    anchored: dict[tuple[int, int, int], dict[str, list[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    """The others: place, where and length of an anchor to its text to rules."""

    def add(self, anchors: Mapping[int, Sequence[_Anchor]]) -> None:
        """Add rules, each by the one of its texts that the fewest of them share."""
        shared = Counter(each for found in anchors.values() for each in found)
        for number, found in anchors.items():
            if not found:
                self.plain.append(number)
                continue
            best = min(found, key=lambda each: (shared[each], each.where, -len(each.text)))
            self.anchored[best.place, best.where, len(best.text)][best.text].append(number)

    def candidates(self, values: _Values) -> Iterator[int]:
        yield from self.plain
        for (place, where, size), by_text in self.anchored.items():
            value = values[place]
            if where == _START:
                yield from by_text.get(value[:size], ())
            elif where == _END:
                yield from by_text.get(value[-size:], ())
            else:
                for at in range(len(value) - size + 1):
                    yield from by_text.get(value[at : at + size], ())


def _anchors(rule: RouteRule, shape: tuple[int, ...]) -> Sequence[_Anchor]:
    """The texts in the patterns of a rule."""
    found: list[_Anchor] = []
    for place, name in enumerate(ATTRIBUTES):
        if place in shape:
            continue
        first, *middle, last = literals(getattr(rule, name))
        found += [_Anchor(place, _START, first), _Anchor(place, _END, last)]
        found += [_Anchor(place, _WITHIN, each) for each in middle]
    return [each for each in found if each.text]


class RouteTable:
    """Rules, indexed: a look-up costs the same with ten rules as with a hundred thousand.

    Args:
        rules: All of them, in any order; those that are disabled are kept for `explain`.
    """

    def __init__(self, rules: Iterable[RouteRule]) -> None:
        self.rules: Sequence[RouteRule] = tuple(rules)
        self._enabled = sorted(
            (each for each in self.rules if each.enabled), key=lambda each: (each.queue, each.rule)
        )
        # Stable, so that of equal rank the first by queue and name stands first.
        self._enabled.sort(key=rank, reverse=True)
        self._ranks = [rank(each) for each in self._enabled]
        self._shapes: dict[tuple[int, ...], dict[_Values, _Bucket]] = {}
        alike: dict[tuple[tuple[int, ...], _Values], dict[int, Sequence[_Anchor]]] = {}
        for number, rule in enumerate(self._enabled):
            shape, exact = _shape(rule)
            alike.setdefault((shape, exact), {})[number] = _anchors(rule, shape)
        for (shape, exact), anchors in alike.items():
            bucket = self._shapes.setdefault(shape, {}).setdefault(exact, _Bucket())
            bucket.add(anchors)

    def find(self, key: RouteKey) -> RouteRule | None:
        """The rule that wins; None: none matches."""
        values = tuple(getattr(key, name) for name in ATTRIBUTES)
        best = len(self._enabled)
        for number in self._candidates(values):
            # The numbers follow the ranks.
            if number < best and takes(self._enabled[number], key):
                best = number
        return self._enabled[best] if best < len(self._enabled) else None

    def explain(self, key: RouteKey) -> RouteVerdict:
        """The rule that wins, and why the nearest ones do not; looks at every rule."""
        winner = self.find(key)
        near = heapq.nlargest(
            _OTHERS,
            (each for each in self.rules if each is not winner),
            key=lambda each: (_matching(each, key), _nearly(each, key), each.enabled, rank(each)),
        )
        remarks = (
            RouteRemark(queue=each.queue, rule=each.rule, reason=_reason(each, key, winner))
            for each in near
        )
        return RouteVerdict(winner=winner, others=tuple(remarks), rules=len(self.rules))

    def ties(self, rule: RouteRule) -> Sequence[RouteRule]:
        """Rules that could take an event as well as this one, with nothing to tell them apart."""
        same = rank(rule)
        alike = (self._enabled[each] for each in self._alike(rule) if self._ranks[each] == same)
        return [each for each in alike if can_tie(rule, each)]

    def all_ties(self) -> Iterator[tuple[RouteRule, RouteRule]]:
        """Pairs that stand in the table although they tie, as far as they are asked for."""
        groups: dict[tuple[Rank, tuple[int, ...], _Values], list[int]] = defaultdict(list)
        for number, rule in enumerate(self._enabled):
            groups[self._ranks[number], *_shape(rule)].append(number)
        for (_, shape, _), numbers in groups.items():
            if len(numbers) > 1:
                yield from self._ties_among(numbers, shape)

    def _ties_among(
        self, numbers: Sequence[int], shape: tuple[int, ...]
    ) -> Iterator[tuple[RouteRule, RouteRule]]:
        """Ties of rules of equal rank, shape and exact values.

        Two of them tie only where one text begins with the other: in their order such texts stand
        together.
        """
        rules = [self._enabled[number] for number in numbers]
        ends = [
            [_end_of(getattr(rule, name), turned=turned) for rule in rules]
            for place, name in enumerate(ATTRIBUTES)
            if place not in shape
            for turned in (False, True)
        ]
        texts = max(ends, key=lambda found: len(set(found)), default=[""] * len(rules))
        order = sorted(range(len(rules)), key=lambda each: texts[each])
        for at, one in enumerate(order):
            for other in itertools.islice(order, at + 1, None):
                if not texts[other].startswith(texts[one]):
                    break
                first, second = sorted((one, other))
                if can_tie(rules[first], rules[second]):
                    yield rules[first], rules[second]

    def _candidates(self, values: _Values) -> Iterator[int]:
        for shape, by_values in self._shapes.items():
            bucket = by_values.get(tuple(values[place] for place in shape))
            if bucket is not None:
                yield from bucket.candidates(values)

    def _alike(self, rule: RouteRule) -> Iterator[int]:
        """Enabled rules of the same shape and exact values: only they can tie."""
        shape, exact = _shape(rule)
        bucket = self._shapes.get(shape, {}).get(exact)
        if bucket is None:
            return
        yield from bucket.plain
        for by_text in bucket.anchored.values():
            for numbers in by_text.values():
                yield from numbers


def _shape(rule: RouteRule) -> tuple[tuple[int, ...], _Values]:
    """Places of the exact attributes, and their values."""
    shape = tuple(place for place, name in enumerate(ATTRIBUTES) if is_exact(getattr(rule, name)))
    return shape, tuple(getattr(rule, ATTRIBUTES[place]) for place in shape)


def _end_of(pattern: str, *, turned: bool) -> str:
    """The text that a pattern begins with, or turned round the one that it ends with."""
    return literals(pattern[::-1] if turned else pattern)[0]


def _matching(rule: RouteRule, key: RouteKey) -> int:
    return sum(matches(getattr(rule, name), getattr(key, name)) for name in ATTRIBUTES)


def _nearly(rule: RouteRule, key: RouteKey) -> int:
    """How many attributes match but for case and blanks at the ends."""
    pairs = ((getattr(rule, name), getattr(key, name)) for name in ATTRIBUTES)
    return sum(
        matches(wanted.strip().casefold(), given.strip().casefold()) for wanted, given in pairs
    )


def _reason(rule: RouteRule, key: RouteKey, winner: RouteRule | None) -> str:
    differs = [
        _difference(LABELS[name], getattr(rule, name), getattr(key, name))
        for name in ATTRIBUTES
        if not matches(getattr(rule, name), getattr(key, name))
    ]
    if not rule.enabled:
        differs.insert(0, "is disabled")
    if differs:
        return "; ".join(differs)[:500]
    assert winner is not None, "an enabled rule that matches has a winner above it"
    return _lesser(rule, winner)


def _difference(label: str, wanted: str, given: str) -> str:
    problem = f"{label} is {_quoted(given)}, not {_quoted(wanted)}"
    if matches(wanted.strip(), given.strip()):
        return f"{problem}: they differ in blanks at the ends"
    if matches(wanted.casefold(), given.casefold()):
        return f"{problem}: they differ in upper and lower case"
    return problem


def _lesser(rule: RouteRule, winner: RouteRule) -> str:
    if rule.priority != winner.priority:
        return f"matches too, but its priority is {rule.priority}, not {winner.priority}"
    for name in ATTRIBUTES:
        mine, best = getattr(rule, name), getattr(winner, name)
        if specificity(mine) != specificity(best):
            label = LABELS[name]
            return (
                f"matches too, but its {label} {_quoted(mine)} is less specific "
                f"than {_quoted(best)}"
            )
    return "matches too, as specifically: a tie, which goes to the first by queue and rule"


def _quoted(text: str) -> str:
    return f"'{text}'" if len(text) <= 60 else f"'{text[:57]}...'"
