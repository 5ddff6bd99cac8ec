"""What it costs to encrypt the payloads that Temporal stores."""

import base64
import os
from dataclasses import replace
from typing import Final

from temporalio.converter import DataConverter

from benchmarks.imports.documents import Runs, import_all
from benchmarks.report import Table, middle, spread
from benchmarks.stack import Servers
from benchmarks.stopwatch import Stopwatch
from workers.shared.payload_codec import EncryptingCodec
from workers.shared.plugin import docflow_plugin

_SIZES: Final = {"1 KB": 1_000, "100 KB": 100_000}
_TIMES: Final = 2_000
_ROUNDS: Final = 5


async def cost() -> Table:
    """Encode and decode a text, in clear and encrypted."""
    table = Table(
        "A payload, encoded and decoded",
        ("text", "in clear, us", "encrypted, us", "more, us", "bytes more"),
    )
    ways = [_converter(None), _converter(EncryptingCodec({"one": os.urandom(32)}))]
    for name, size in _SIZES.items():
        text = "x" * size
        taken = [[await _microseconds(way, text) for _ in range(_ROUNDS)] for way in ways]
        [clear_bytes], [encrypted_bytes] = [
            [each.ByteSize() for each in await way.encode([text])] for way in ways
        ]
        clear, encrypted = map(middle, taken)
        table.add(
            name,
            *(spread(each, 1) for each in taken),
            f"{encrypted - clear:.1f}",
            str(encrypted_bytes - clear_bytes),
        )
    return table


def _converter(codec: EncryptingCodec | None) -> DataConverter:
    found = docflow_plugin(codec=codec).data_converter
    assert isinstance(found, DataConverter)
    return found


async def _microseconds(converter: DataConverter, text: str) -> float:
    watch = Stopwatch()
    for _ in range(_TIMES):
        await converter.decode(await converter.encode([text]), [str])
    return watch.read().cpu / _TIMES * 1e6


async def compare(servers: Servers, count: int, rounds: int) -> Table:
    """Import documents in clear and encrypted, in turn in each round."""
    keys = {
        "DOCFLOW_PAYLOAD_KEYS": "one=env:PAYLOADS_OF_BENCHMARK",
        "PAYLOADS_OF_BENCHMARK": base64.b64encode(os.urandom(32)).decode(),
    }
    encrypting = replace(servers, further=keys)
    clear, encrypted = Runs(), Runs()
    for number in range(rounds):
        await import_all(servers, clear, f"c{number}", count)
        await import_all(encrypting, encrypted, f"k{number}", count)
    table = Table(
        f"{count:,} small documents, payloads in clear and encrypted",
        ("payloads", "documents/s", "CPU ms per document"),
    )
    table.add("in clear", spread(clear.rates(count)), clear.milliseconds(count))
    table.add("encrypted", spread(encrypted.rates(count)), encrypted.milliseconds(count))
    pairs = zip(encrypted.seconds, clear.seconds, strict=True)
    ratio = middle([with_keys / without for with_keys, without in pairs])
    table.notes.append(f"encrypted documents take {ratio:.2f} x the time of those in clear")
    return table
