"""How long it takes to find the rule of an event among a hundred thousand."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from benchmarks.report import Table, at_most, middle, percentile
from workflows.transfers.events import RouteKey
from workflows.transfers.routes import RouteRule, RouteTable

RULES: Final = 100_000
EVENTS: Final = 2_000
MILLISECONDS: Final = 1.0
_SEED: Final = 11

SHAPES: Final[Mapping[str, Callable[[int], tuple[RouteRule, RouteKey]]]] = {
    "exact": lambda n: (
        _rule(n, account_id=f"ACC{n}", source=f"S{n % 50}", type="T", subject="File Upload"),
        _key(account_id=f"ACC{n}", source=f"S{n % 50}"),
    ),
    "beginnings": lambda n: (
        _rule(n, account_id=f"ACC{n:06}*", subject="*Upload*"),
        _key(account_id=f"ACC{n:06}-north"),
    ),
    "texts within, most of them shared": lambda n: (
        _rule(n, account_id="ACC", subject=f"*/containers/in/blobs/*-{n:06}-*.csv"),
        _key(account_id="ACC", subject=f"/blobServices/containers/in/blobs/a-{n:06}-b.csv"),
    ),
}


def _rule(number: int, **fields: str) -> RouteRule:
    return RouteRule.model_validate({"queue": "urgent", "rule": f"r{number}", **fields})


def _key(account_id: str, source: str = "S", subject: str = "File Upload") -> RouteKey:
    return RouteKey(account_id=account_id, source=source, type="T", subject=subject)


def look_ups() -> Table:
    """Rules of one shape, and events of which every second one matches none."""
    table = Table(
        f"The rule of an event among {RULES:,}",
        ("rules", "index s", "median ms", "p95 ms", "slowest ms"),
    )
    for name, shape in SHAPES.items():
        pairs = [shape(number) for number in range(RULES)]
        began = time.perf_counter()
        index = RouteTable(rule for rule, _ in pairs)
        built = time.perf_counter() - began
        taken = sorted(_timed(index, pairs))
        table.add(
            name,
            f"{built:.1f}",
            f"{middle(taken):.3f}",
            f"{percentile(taken, 0.95):.3f}",
            f"{taken[-1]:.3f}",
        )
        table.notes.append(at_most(percentile(taken, 0.95), MILLISECONDS, " ms"))
    return table


def _timed(index: RouteTable, pairs: list[tuple[RouteRule, RouteKey]]) -> Iterator[float]:
    """Milliseconds of each look-up."""
    for number, (rule, key) in enumerate(random.Random(_SEED).sample(pairs, EVENTS)):
        is_known = number % 2 == 0
        asked = key if is_known else key.model_copy(update={"type": "T", "account_id": "NONE"})
        began = time.perf_counter()
        found = index.find(asked)
        yield (time.perf_counter() - began) * 1_000
        assert found == (rule if is_known else None)
