"""What people wait for at the gateway: the end of an upload, and the status of an import."""

import asyncio
import random
import secrets
import time
import zipfile
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.memory import peak_bytes
from benchmarks.report import Table, at_most, percentile, spread
from benchmarks.spreadsheets import workload
from benchmarks.spreadsheets.open import open_imports
from benchmarks.spreadsheets.stack import SheetStack, open_sheet_stack
from stack.postgres import postgres_server

UPLOAD_BYTES: Final = 100_000_000
ANSWER: Final = 1.0
OPEN_IMPORTS: Final = 1_000
STATUS_P99: Final = 0.050
_REQUESTS: Final = 3_000
_AT_ONCE: Final = 8
_PIECE: Final = 1 << 16


@dataclass
class Uploads:
    """Rounds of one file."""

    rates: list[float] = field(default_factory=list[float])
    """Bytes per second, up to the last byte."""
    answers: list[float] = field(default_factory=list[float])
    """Seconds from the last byte to the answer."""


async def upload(folder: Path, rounds: int) -> Table:
    """Large files through the gateway."""
    table = Table(
        f"{UPLOAD_BYTES / 1e6:.0f} MB through the gateway",
        ("file", "MB/s until the last byte", "then ms to the answer", "slowest ms"),
    )
    files = {"CSV": _large_text(folder / "large.csv"), "XLSX": _large_book(folder / "large.xlsx")}
    slowest = 0.0
    with postgres_server(durable=True) as database:
        async with open_sheet_stack(folder / "stack", database) as stack:
            before = peak_bytes(stack.gateway.pid)
            for name, file in files.items():
                figures = Uploads()
                for _ in range(rounds):
                    await _upload(stack, file, figures)
                slowest = max(slowest, *figures.answers)
                table.add(
                    name,
                    spread([rate / 1e6 for rate in figures.rates]),
                    spread([1000 * seconds for seconds in figures.answers]),
                    f"{1000 * max(figures.answers):.0f}",
                )
            after = peak_bytes(stack.gateway.pid)
    table.notes += [
        f"the slowest answer after the last byte: {at_most(slowest, ANSWER, ' s')}",
        f"peak memory of the gateway: {after / 1e6:.0f} MB, {before / 1e6:.0f} MB before",
        "a worker was there and began to read each file as soon as it was in",
    ]
    return table


async def _upload(stack: SheetStack, file: Path, figures: Uploads) -> None:
    boundary = secrets.token_hex(16)
    fields = {"importType": "EVENT_PARTICIPANT", "contextId": str(stack.club.event_id)}
    last_byte = 0.0

    async def form() -> AsyncGenerator[bytes]:
        nonlocal last_byte
        for name, value in fields.items():
            yield _part(boundary, f'name="{name}"') + value.encode() + b"\r\n"
        yield _part(boundary, f'name="file"; filename="{file.name}"')
        with file.open("rb") as opened:
            while block := opened.read(_PIECE):
                yield block
        yield f"\r\n--{boundary}--\r\n".encode()
        # Asked for more, so all of it is sent.
        last_byte = time.perf_counter()

    began = time.perf_counter()
    answer = await stack.api.post(
        "/api/imports",
        content=form(),
        headers={"Content-Type": f"multipart/form-data; boundary={boundary}"},
    )
    ended = time.perf_counter()
    uuid = answer.raise_for_status().json()["identifier"]
    figures.rates.append(file.stat().st_size / (last_byte - began))
    figures.answers.append(ended - last_byte)
    # Its rows are not to be read while the next file is on its way.
    (await stack.api.delete(f"/api/imports/{uuid}")).raise_for_status()
    await stack.finished(uuid)


def _part(boundary: str, disposition: str) -> bytes:
    return f"--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n".encode()


def _large_text(path: Path) -> Path:
    workload.write_text(path, 100)
    rows = 100 * UPLOAD_BYTES // path.stat().st_size
    workload.write_text(path, rows)
    return path


def _large_book(path: Path) -> Path:
    """A workbook of that size without compression: its rows are soon written."""
    small = path.with_name("small.xlsx")
    workload.write_workbook(small, 1_000)
    rows = 1_000 * UPLOAD_BYTES // _unpacked(small)
    workload.write_workbook(small, rows)
    with zipfile.ZipFile(small) as packed, zipfile.ZipFile(path, "w") as plain:
        for name in packed.namelist():
            plain.writestr(name, packed.read(name))
    small.unlink()
    return path


def _unpacked(path: Path) -> int:
    with zipfile.ZipFile(path) as packed:
        return sum(part.file_size for part in packed.infolist())


async def status(folder: Path) -> Table:
    """The status of open imports, one after another and several at once."""
    table = Table(
        f"GET /api/imports/{{uuid}} of {OPEN_IMPORTS:,} open imports, {_REQUESTS:,} requests",
        ("clients", "p50 ms", "p99 ms", "requests/s"),
    )
    with postgres_server(durable=True) as database:
        async with open_sheet_stack(folder / "stack", database) as stack:
            uuids = await open_imports(stack, OPEN_IMPORTS)
            singly = await _requests(stack, uuids, 1, table)
            await _requests(stack, uuids, _AT_ONCE, table)
    table.notes.append(
        f"p99, one client: {at_most(1000 * percentile(singly, 0.99), 1000 * STATUS_P99, ' ms')}"
    )
    return table


async def _requests(
    stack: SheetStack, uuids: Sequence[str], clients: int, table: Table
) -> Sequence[float]:
    seconds: list[float] = []

    async def ask(count: int) -> None:
        for _ in range(count):
            began = time.perf_counter()
            answer = await stack.api.get(f"/api/imports/{random.choice(uuids)}")
            seconds.append(time.perf_counter() - began)
            assert answer.raise_for_status().json()["status"] == "COLUMN_MAPPING"

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(ask(_REQUESTS // clients))
    rate = len(seconds) / (time.perf_counter() - began)
    p50, p99 = (1000 * percentile(seconds, share) for share in (0.5, 0.99))
    table.add(str(clients), f"{p50:.1f}", f"{p99:.1f}", f"{rate:.0f}")
    return seconds
