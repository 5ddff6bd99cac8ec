"""Documents, and the messages that ask for their import."""

import csv
import io
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import xlsxwriter
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient

PROJECT = "bench"
ROWS = 200
"""Rows of a small document, which make about 20 KB."""

_SMALL_HEADER = (
    *("Code", "Description", "Category", "Make", "Model", "Serial"),
    *("Ownership", "Rate", "Rate unit", "Fuel", "Status"),
)
WIDE_HEADER = (
    *("Drawing", "Commodity code", "Size", "Line no", "Area"),
    *("Spec", "Description", "Quantity", "Unit", "Revision"),
)
_BATCH = 500
_SIZES = ('1/2"', '3/4"', '1"', '2"', '4"', '6"', '8"', '12"')


def small_documents(folder: Path, tag: str, count: int) -> list[bytes]:
    """Write equipment lists that share no key, as blobs.

    Args:
        folder: The blob container's folder.
        tag: Begins every task id and key.
        count: How many.

    Returns:
        The body of the message for each.
    """
    (folder / tag).mkdir(parents=True)
    bodies: list[bytes] = []
    for number in range(count):
        name = f"{tag}/{number:05}.csv"
        (folder / name).write_text(_small_document(f"{tag}-{number:05}"), encoding="utf-8")
        fields = {"blob_name": name, "filename": "equipment.csv"}
        bodies.append(message("equipment", f"{tag}-{number:05}", **fields))
    return bodies


def message(document_type: str, task_id: str, **fields: Any) -> bytes:
    """The body of a message."""
    basics = {"document_type": document_type, "task_id": task_id, "project_id": PROJECT}
    return json.dumps({**basics, **fields}).encode()


def _small_document(prefix: str) -> str:
    sheet = io.StringIO()
    writer = csv.writer(sheet)
    writer.writerow(_SMALL_HEADER)
    for row in range(ROWS):
        writer.writerow(
            (
                f"{prefix}-{row:03}",
                f"Crawler crane no. {row}, lattice boom",
                "Cranes",
                "Liebherr",
                f"LR 1{row:03}",
                f"SN-{row * 7919:07}",
                "rented" if row % 3 else "owned",
                f"{100 + row}.{row % 100:02}",
                "day",
                "diesel",
                "available",
            )
        )
    return sheet.getvalue()


def wide_rows(count: int) -> Iterator[tuple[str | float, ...]]:
    """Take-off lines whose keys are all different."""
    for row in range(count):
        yield (
            f"ISO-{row // 25:05}-{row % 7}",
            f"PIP{row % 100_003:07}",
            _SIZES[row % len(_SIZES)],
            f"{100 + row % 800}-HC-{row % 4000:04}",
            f"A{row % 40:02}",
            "CS150",
            f"Pipe, seamless, A106 Gr.B, item {row}",
            round(1 + row % 977 * 0.125, 3),
            "m" if row % 4 else "pcs",
            f"{row % 5}",
        )


def write_csv(path: Path, rows: int) -> None:
    """A take-off as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(WIDE_HEADER)
        writer.writerows(wide_rows(rows))


def write_xlsx(path: Path, rows: int) -> None:
    """A take-off as a workbook with shared strings, as Excel writes them."""
    workbook = xlsxwriter.Workbook(path)
    sheet = workbook.add_worksheet("MTO")
    sheet.write_row(0, 0, WIDE_HEADER)
    for number, row in enumerate(wide_rows(rows), start=1):
        sheet.write_row(number, 0, row)
    workbook.close()


@asynccontextmanager
async def open_sender(
    connection_string: str, queue: str
) -> AsyncGenerator[Callable[[Sequence[bytes]], Awaitable[None]]]:
    """What sends messages in batches. Closing it takes the client of Service Bus a second."""
    async with (
        ServiceBusClient.from_connection_string(connection_string) as client,
        client.get_queue_sender(queue) as sender,
    ):

        async def send_all(bodies: Sequence[bytes]) -> None:
            for start in range(0, len(bodies), _BATCH):
                batch = bodies[start : start + _BATCH]
                await sender.send_messages([ServiceBusMessage(body) for body in batch])

        yield send_all


async def send(connection_string: str, queue: str, bodies: Sequence[bytes]) -> None:
    """Send messages in batches."""
    async with open_sender(connection_string, queue) as send_all:
        await send_all(bodies)
