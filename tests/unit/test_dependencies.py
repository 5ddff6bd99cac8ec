"""Waiting for what docflow itself needs: one check for all, and an outage that is shown."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, call

import pytest
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.shared import dependencies
from activities.shared.dependencies import Dependencies, delay, scratch_probe
from adapters.ports.errors import Denied, Unavailable
from tests.support.imports.activities import environment
from workers.shared.logs import bound, facts
from workflows.shared.dependencies import Dependency, OutageInput, Recovery, WaitInput, outage_id
from workflows.shared.errors import UNAVAILABLE

DATABASE = WaitInput(dependency=Dependency.DATABASE)
RUNS = 320


@dataclass
class Setup:
    """A database that is probed, and the outages that are shown."""

    scratch: Path
    failure: Exception | None = None
    probes: int = 0
    named: dict[str, Exception | None] = field(default_factory=dict[str, Exception | None])
    """What the probe of a partner raises."""
    free: int | None = None
    """Bytes that partners have room for."""
    outages: list[OutageInput] = field(default_factory=list[OutageInput])
    proceed: asyncio.Event = field(default_factory=asyncio.Event)
    runs: AsyncMock = field(default_factory=AsyncMock)
    """Keeps what was noted of runs."""

    def __post_init__(self) -> None:
        self.proceed.set()
        self.dependencies = Dependencies(
            {Dependency.DATABASE: self.probe, Dependency.SCRATCH_DISK: scratch_probe(self.scratch)},
            {Dependency.DATABASE: ["DATABASE_URL"]},
            self,
            self.scratch,
            {Dependency.PARTNER: self.probe_partner},
            self.runs,
        )

    async def probe_partner(self, name: str) -> int | None:
        self.probes += 1
        if (failure := self.named[name]) is not None:
            raise failure
        return self.free

    async def probe(self) -> None:
        self.probes += 1
        failure = self.failure
        await self.proceed.wait()
        if failure is not None:
            raise failure

    async def begin(self, outage: OutageInput, task_queue: str) -> None:
        self.outages.append(outage)
        self.record()

    def record(self) -> None:
        """For a test that looks at where an outage is begun."""

    async def wait(self, attempt: int = 1, awaited: WaitInput = DATABASE) -> Recovery:
        return await environment(attempt=attempt).run(self.dependencies.wait, awaited)

    async def fails(self, attempt: int = 1, awaited: WaitInput = DATABASE) -> ApplicationError:
        with pytest.raises(ApplicationError) as raised:
            await self.wait(attempt, awaited)
        assert (raised.value.type, raised.value.non_retryable) == (UNAVAILABLE, False)
        assert raised.value.category is ApplicationErrorCategory.BENIGN, "the SDK logs it at DEBUG"
        return raised.value


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path)


async def test_a_dependency_that_answers_is_waited_for_no_longer(setup: Setup) -> None:
    assert await setup.wait() == Recovery(was_down=False)
    assert await setup.wait(attempt=2) == Recovery(was_down=True)
    assert setup.outages == []


async def test_what_a_run_waits_for_is_noted_when_it_begins_and_when_it_is_over(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = environment().info.workflow_id
    acme = WaitInput(dependency=Dependency.PARTNER, name="acme")
    monkeypatch.setattr(dependencies, "FAILURE_COUNTS_SECONDS", 0.0)
    setup.named["acme"] = Unavailable("refused", Dependency.PARTNER, name="acme")
    for attempt in (1, 2):
        await setup.fails(attempt, acme)
    assert setup.runs.mock_calls == [call.wait(run, "outage/partner/acme")]
    setup.named["acme"] = None
    await setup.wait(3, acme)
    assert setup.runs.mock_calls[1:] == [call.resume(run)]
    # Nothing lists runs while the database is awaited, and most runs wait for nothing.
    setup.failure = Unavailable("refused", Dependency.DATABASE)
    await setup.fails()
    await setup.wait(1, acme)
    assert len(setup.runs.mock_calls) == 2
    # What cannot be noted now changes nothing.
    setup.runs.wait.side_effect = Unavailable("refused", Dependency.DATABASE)
    setup.named["acme"] = Unavailable("refused", Dependency.PARTNER, name="acme")
    await setup.fails(1, acme)


async def test_all_runs_that_wait_share_one_probe(setup: Setup) -> None:
    answers = await asyncio.gather(*(setup.wait() for _ in range(RUNS)))
    assert (len(answers), setup.probes) == (RUNS, 1)


async def test_a_failure_counts_for_some_seconds(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup.failure = Unavailable("refused", Dependency.DATABASE)
    for _ in range(3):
        assert (await setup.fails()).message == "refused"
    assert (setup.probes, len(setup.outages)) == (1, 1)
    monkeypatch.setattr(dependencies, "FAILURE_COUNTS_SECONDS", 0.0)
    setup.failure = None
    assert await setup.wait(attempt=2) == Recovery(was_down=True)


async def test_a_success_does_not_count_for_who_asks_after_it_began(setup: Setup) -> None:
    setup.proceed.clear()
    first = asyncio.create_task(setup.wait())
    await asyncio.sleep(0)
    while not setup.probes:
        await asyncio.sleep(0)
    setup.failure = Unavailable("refused", Dependency.DATABASE)
    later = [asyncio.create_task(setup.wait()) for _ in range(2)]
    await asyncio.sleep(0)
    setup.proceed.set()
    assert await first == Recovery(was_down=False)
    outcomes = await asyncio.gather(*later, return_exceptions=True)
    assert all(isinstance(outcome, ApplicationError) for outcome in outcomes)
    assert setup.probes == 2


async def test_one_that_is_cancelled_does_not_end_the_check_of_another(setup: Setup) -> None:
    setup.proceed.clear()
    cancelled, waiting = (asyncio.create_task(setup.wait()) for _ in range(2))
    while not setup.probes:
        await asyncio.sleep(0)
    cancelled.cancel()
    setup.proceed.set()
    assert await waiting == Recovery(was_down=False)
    assert setup.probes == 1


async def test_an_outage_is_shown_with_its_reason(setup: Setup) -> None:
    setup.failure = Unavailable("connection refused", Dependency.DATABASE)
    await setup.fails()
    [outage] = setup.outages
    assert (outage.dependency, outage.problem) == (Dependency.DATABASE, "connection refused")
    assert (outage.settings, outage.notices) == ((), True)


async def test_what_is_logged_of_an_outage_is_when_it_begins_changes_and_ends(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dependencies, "FAILURE_COUNTS_SECONDS", 0.0)
    for failure in ("refused", "refused", "password refused", None, None, "refused"):
        setup.failure = failure and Unavailable(failure, Dependency.DATABASE)
        await asyncio.gather(*(setup.wait() for _ in range(3)), return_exceptions=True)
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("WARNING", "the database cannot be used: refused"),
        ("WARNING", "the database cannot be used: password refused"),
        ("WARNING", "the database answers again"),
        ("WARNING", "the database cannot be used: refused"),
    ]


async def test_an_outage_is_about_no_message_and_no_run(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Mapping[str, Any]] = []
    monkeypatch.setattr(setup, "record", lambda: seen.append(facts()))
    monkeypatch.setattr(dependencies.shutil, "disk_usage", _disk(free=0))
    setup.failure = Unavailable("refused", Dependency.DATABASE)
    room = WaitInput(dependency=Dependency.SCRATCH_DISK, room=5 << 20)
    with bound(message_id="m-1"):
        for awaited in (DATABASE, room):
            await setup.fails(awaited=awaited)
    assert (len(setup.outages), seen) == (2, [{}, {}])


async def test_a_wrong_setting_is_named(setup: Setup) -> None:
    setup.failure = Unavailable("password refused", Dependency.DATABASE, misconfigured=True)
    await setup.fails()
    [outage] = setup.outages
    assert outage.settings == ("DATABASE_URL",)


async def test_another_problem_than_the_one_known_ends_the_wait(setup: Setup) -> None:
    known = WaitInput(dependency=Dependency.DATABASE, problem="connection refused")
    setup.failure = Unavailable("connection refused", Dependency.DATABASE)
    await setup.fails(awaited=known)
    setup = Setup(setup.scratch)
    setup.failure = Unavailable("password refused", Dependency.DATABASE, misconfigured=True)
    assert await setup.wait(attempt=7, awaited=known) == Recovery(
        was_down=True, problem="password refused", settings=("DATABASE_URL",)
    )
    assert (await setup.fails()).message == "password refused", "a run that waits is not told"


async def test_no_answer_in_time_is_an_outage(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependencies, "PROBE_SECONDS", 0.01)
    setup.proceed.clear()
    assert "does not answer within" in (await setup.fails()).message


async def test_a_refusal_is_an_answer(setup: Setup) -> None:
    setup.failure = Denied("no rights on this queue")
    assert await setup.wait() == Recovery(was_down=False)
    assert setup.outages == []


async def test_the_server_asks_again_in_5_to_60_seconds() -> None:
    delays = [delay(attempt).total_seconds() for attempt in range(1, 200)]
    assert min(delays) >= 5
    assert max(delays) <= 60
    assert max(delays) > 30
    assert len(set(delays[10:])) > 100, "not all at once"


async def test_a_wait_for_room_ends_when_there_is_room(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = WaitInput(dependency=Dependency.SCRATCH_DISK, room=5 << 20)
    assert await setup.wait(awaited=needed) == Recovery(was_down=False)
    monkeypatch.setattr(dependencies.shutil, "disk_usage", _disk(free=(5 << 20) - 1))
    assert (
        await setup.fails(awaited=needed)
    ).message == "the scratch disk is full: 5 MB are needed"
    [outage] = setup.outages
    assert (outage.dependency, outage.room) == (Dependency.SCRATCH_DISK, 5 << 20)


def _disk(free: int) -> Callable[[Path], Any]:
    @dataclass
    class Usage:
        free: int

    return lambda path: Usage(free)


async def test_each_of_many_is_probed_by_its_name_and_has_an_outage_of_its_own(
    setup: Setup,
) -> None:
    setup.named = {"acme": Unavailable("no route", Dependency.PARTNER, name="acme"), "other": None}
    acme = WaitInput(dependency=Dependency.PARTNER, name="acme")
    other = WaitInput(dependency=Dependency.PARTNER, name="other")
    for _ in range(2):
        assert (await setup.fails(awaited=acme)).message == "no route"
    assert await setup.wait(awaited=other) == Recovery(was_down=False)
    assert setup.probes == 2
    assert {outage.workflow_id for outage in setup.outages} == {"outage/partner/acme"}
    assert {outage.label for outage in setup.outages} == {"partner acme"}


def test_what_older_releases_have_written_still_decodes() -> None:
    awaited = WaitInput.model_validate_json('{"dependency": "database", "room": 5}')
    assert (awaited.name, awaited.label) == (None, "database")
    assert outage_id(Dependency.DATABASE) == "outage/database"


async def test_room_at_a_partner_is_waited_for_by_those_who_need_it(setup: Setup) -> None:
    setup.named = {"acme": None}
    setup.free = 1 << 20
    needed = WaitInput(dependency=Dependency.PARTNER, name="acme", room=5 << 20)
    assert "acme has no room for 5,242,880 bytes" in str(await setup.fails(awaited=needed))
    assert (setup.outages[0].name, setup.outages[0].room) == ("acme", 5 << 20)
    reads = WaitInput(dependency=Dependency.PARTNER, name="acme")
    assert not (await setup.wait(awaited=reads)).was_down
    setup.free = 5 << 20
    assert (await setup.wait(2, needed)).was_down
    setup.free = None
    assert not (await setup.wait(awaited=needed)).was_down, "it does not tell"
