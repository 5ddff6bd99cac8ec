"""Probes of readiness are answered in time, whatever the dependencies do."""

import asyncio

from workers.shared.services.readiness import Readiness
from workers.shared.services.requirements import Finding, Requirement, State


async def test_a_probe_is_answered_while_a_dependency_hangs() -> None:
    answers, looks = asyncio.Event(), 0

    async def look() -> Finding:
        nonlocal looks
        looks += 1
        await answers.wait()
        return Finding(State.OK, "there")

    needed = Requirement("shelf", look, "nothing is kept", "buy one", watch=look)
    readiness = Readiness([needed])
    for _ in range(3):
        await readiness.probed(0.01)
        assert readiness.health.missing == (
            "what this process depends on does not answer within 0.01 s",
        )
    assert looks == 1, "probes share the look that has not ended"
    answers.set()
    await readiness.probed(60)
    assert readiness.health.missing == ()
