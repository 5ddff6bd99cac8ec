"""Documents for imports that are disturbed, each with rows that no other document touches."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workflows.imports.messages import IMPORT_MESSAGE, ImportMessage, Strategy

PROJECT = "P1"
SMALL_BYTES = 750_000
"""Size up to which a document is loaded by local activities."""
SEED_SHARE = 10
"""One row in so many is there before the document comes."""
BAD_EVERY = 997
"""One row in so many has a quantity or price that is not a number."""


@dataclass(frozen=True)
class Document:
    """A table to import.

    Attributes:
        name: Its task, and the service or the code prefix that its rows belong to.
        strategy: `merge` fills materials, `replace` estimate lines, `append` take-off lines.
        rows: Rows below the header.
    """

    name: str
    strategy: Strategy
    rows: int

    @property
    def task_id(self) -> str:
        return self.name

    @property
    def table(self) -> str:
        return {
            Strategy.MERGE: "materials",
            Strategy.REPLACE: "estimate_lines",
            Strategy.APPEND: "mto_lines",
        }[self.strategy]

    @property
    def blob_name(self) -> str:
        return f"uploads/{self.task_id}.csv"

    @property
    def message(self) -> ImportMessage:
        fields: dict[str, Any] = {
            "document_type": {
                "materials": "material",
                "estimate_lines": "estimation_master",
                "mto_lines": "mto",
            }[self.table],
            "project_id": PROJECT,
            "task_id": self.task_id,
            "blob_name": self.blob_name,
            "strategy": self.strategy,
            "idempotency_key": self.task_id,
        }
        if self.strategy is not Strategy.MERGE:
            fields["service_id"] = self.name
        return IMPORT_MESSAGE.validate_python(fields)

    def write(self, target: Path) -> None:
        """Write the file."""
        with target.open("w", newline="") as file:
            csv.writer(file).writerows(self._lines(range(self.rows)))

    def _lines(self, numbers: Sequence[int]) -> Iterator[tuple[object, ...]]:
        match self.strategy:
            case Strategy.MERGE:
                yield from _materials(self.name, numbers, price=8)
            case Strategy.REPLACE:
                yield from _estimate(numbers, rate=4)
            case _:
                yield from _take_off(numbers)


@dataclass(frozen=True)
class Earlier(Document):
    """What is there before a document comes: rows that it changes, keeps, and takes away."""

    @property
    def task_id(self) -> str:
        return f"{self.name}-earlier"

    def _lines(self, numbers: Sequence[int]) -> Iterator[tuple[object, ...]]:
        some = numbers[: max(1, len(numbers) // SEED_SHARE)]
        match self.strategy:
            case Strategy.MERGE:
                yield from _materials(self.name, some, price=9)
            case Strategy.REPLACE:
                # Half of these item codes are not in the document itself.
                yield from _estimate([n * 2 + numbers[-1] - some[-1] for n in some], rate=5)
            case _:
                yield from _take_off(some)


def earlier(documents: Sequence[Document]) -> list[Document]:
    """What has to be there before these documents."""
    return [Earlier(document.name, document.strategy, document.rows) for document in documents]


def _materials(name: str, numbers: Sequence[int], price: int) -> Iterator[tuple[object, ...]]:
    yield "code", "description", "unit", "price", "currency", "supplier", "lead time"
    for n in numbers:
        # Even numbers cost what they have always cost.
        amount = f"{n / (price if n % 2 else 8):.3f}"
        cost = "on request" if n % BAD_EVERY == 5 else amount
        yield f"{name}.{n:06}", f"Flange no. {n}", "pc", cost, "EUR", f"Supplier {n % 7}", n % 90


def _estimate(numbers: Sequence[int], rate: int) -> Iterator[tuple[object, ...]]:
    yield "item code", "cost code", "description", "unit", "quantity", "unit rate"
    for n in numbers:
        yield f"E{n:06}", f"C{n % 10}", f"Weld no. {n}", "pc", f"{n / 8:.3f}", f"{n / rate:.2f}"


def _take_off(numbers: Sequence[int]) -> Iterator[tuple[object, ...]]:
    yield "drawing", "commodity code", "size", "description", "quantity", "unit"
    for n in numbers:
        quantity = "some" if n % BAD_EVERY == 5 else f"{n / 8:.3f}"
        # Forty lines of a drawing share ten codes: the same key comes four times.
        yield f"D{n // 40:05}", f"C{n % 10}", f"DN{n % 2 * 50 + 50}", f"Pipe {n}", quantity, "m"


LARGE = tuple(
    Document(f"{strategy}-large-{number}", strategy, 22_000)
    for number in range(2)
    for strategy in (Strategy.MERGE, Strategy.REPLACE, Strategy.APPEND)
)
"""Above `SMALL_BYTES`, five chunks: loaded by a heartbeating activity."""
MIDDLE = tuple(
    Document(f"{strategy}-middle-{number}", strategy, 11_000)
    for number in range(2)
    for strategy in (Strategy.MERGE, Strategy.REPLACE, Strategy.APPEND)
)
"""Three chunks, loaded by local activities."""
SMALL = tuple(
    Document(f"{strategy}-small-{number}", strategy, 200)
    for number in range(16)
    for strategy in (Strategy.MERGE, Strategy.REPLACE, Strategy.APPEND)
)
"""One chunk."""
ALL = (*LARGE, *MIDDLE, *SMALL)
