"""Events and job settings with random faults, from a seed."""

import copy
import hashlib
import json
import random
from collections.abc import Callable
from typing import Any, Final

from temporalio import activity

from adapters.ports.transfers import SettingsFile
from tests.support.transfers.events import FIRE, READ, WRITE, an_event
from workflows.shared.contracts import BlobRef

TEXTS: Final = (
    *("", " ", "\0", "a\nb", "\u202e\u2066", "\ud83d\ude00", "ÿ" * 300, "x" * 500, "x" * 501),
    *("..", "../../etc/passwd", "/etc/passwd", "a//b", "a\\b", "*", "?", "[a-", "{name}", "{", "}"),
    *("{time:%", "{data.a.b}", "%s%n", "$(id)", "'; drop table transfers; --", "<script>"),
    *("1.0", "jobs", "nowhere", "orders.csv", "File Upload", "TMS001", "2026-03-01T10:00:00Z"),
    *("0002-01-01T00:00:00Z", "9998-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:00"),
    *(
        "\ud800",
        "2026-02-30T10:00:00Z",
        "2016-12-31T23:59:60Z",
        "e-1 \u0000",
        "\ufeff",
        "con",
        "\x7f",
    ),
)
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 3, 31, 32, 1e308, 2**53, -(2**63), 10**18, 0.1, [], {}),
    *([[]], [None], {"": {}}, {"a": {"b": "c"}}, ["x"] * 60, {"Action": "ReadFile"}),
)
ACTIONS: Final[tuple[dict[str, Any], ...]] = (
    READ,
    WRITE,
    FIRE,
    {"Action": "Checksum", "Write": True},
    {"Action": "Compress", "Format": "zip"},
    {"Action": "Compress", "Format": "gzip"},
    {"Action": "Extract"},
    {"Action": "Scan"},
    {"Action": "Encrypt", "Partner": "acme"},
    {"Action": "CallHttp", "Partner": "store"},
)


class Fuzzing:
    """Makes events and settings that are right but for a few changes.

    Args:
        dice: Chance.
    """

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._made = 0

    def message(self) -> bytes:
        """The body of a message; each has another id, as far as it has one."""
        self._made += 1
        event: Any = an_event(id=f"fuzzed-{self._made}")
        event["data"]["path"] = "in/orders.csv"
        for _ in range(self._dice.choice((0, 1, 1, 2, 4))):
            event = self._changed(event)
        text = json.dumps(event, ensure_ascii=self._dice.random() < 0.5)
        body = text.encode(errors="surrogatepass")
        return self._damaged(body) if self._dice.random() < 0.15 else body

    def settings(self) -> str:
        """A `jobsettings.json` with one job of the queue `jobs`."""
        chosen = [READ, *(self._dice.choice(ACTIONS) for _ in range(self._dice.randrange(4)))]
        once = {"RetryFailureSource": 0, "RetryFailureDestination": 0}
        job = {"Job": "orders", "Queue": "jobs", "Actions": {**once, "List": chosen}}
        settings: Any = {"Jobs": [job]}
        for _ in range(self._dice.choice((0, 0, 1, 1, 2, 3))):
            settings = self._changed(settings)
        text = json.dumps(settings)
        return text[: self._dice.randrange(len(text))] if self._dice.random() < 0.05 else text

    def _changed(self, value: Any) -> Any:
        """A copy with one change somewhere in it."""
        root = [copy.deepcopy(value)]
        places: list[tuple[Any, Any]] = [(root, 0)]
        for container, key in places:
            inner = container[key]
            if isinstance(inner, dict):
                places += [(inner, name) for name in inner]
            elif isinstance(inner, list):
                places += [(inner, number) for number in range(len(inner))]
        container, key = self._dice.choice(places[1:] or places)
        match self._dice.randrange(5):
            case 0 if isinstance(container, dict):
                del container[key]
            case 1 if isinstance(container, dict):
                container[self._dice.choice(TEXTS)] = self._any()
            case 2 if isinstance(container[key], str):
                text = container[key]
                at = self._dice.randrange(len(text) + 1)
                container[key] = text[:at] + self._dice.choice(TEXTS) + text[at:]
            case _:
                container[key] = self._any()
        return root[0]

    def _any(self) -> Any:
        return self._dice.choice((*TEXTS, *VALUES))

    def _damaged(self, body: bytes) -> bytes:
        at = self._dice.randrange(len(body) + 1)
        ways: tuple[Callable[[], bytes], ...] = (
            lambda: body[:at],
            lambda: body[:at] + self._dice.randbytes(3) + body[at:],
            lambda: b"\xef\xbb\xbf" + body,
            lambda: body.decode("utf-8", "replace").encode("utf-16"),
            lambda: body + body,
            lambda: b"[" * 30_000,
            lambda: b"x" * 70_000,
            lambda: self._dice.randbytes(40),
            lambda: body.replace(b'"id"', b'"id": "twice", "id"'),
        )
        return self._dice.choice(ways)()


class FuzzedSettings:
    """As `SettingsSource`: each run finds other settings, and the same at every attempt.

    Args:
        seed: Of what is changed in them.
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed

    async def read(self) -> SettingsFile:
        """A `jobsettings.json` with a few changes."""
        dice = random.Random(f"{self._seed}/{activity.info().workflow_id}")
        text = Fuzzing(dice).settings().encode()
        sha256 = hashlib.sha256(text).hexdigest()
        return SettingsFile(text, BlobRef(name="jobsettings.json", size=len(text), sha256=sha256))
