"""`python -m benchmarks.imports.dbos_queue FILE WARM`: the same steps as a DBOS workflow.

DBOS takes its documents from a queue of its own, in the same PostgreSQL. They lie there before
the clock starts, which spares it the enqueueing. FILE holds a message a line; the first WARM of
them are not timed.
"""

import asyncio
import dataclasses
import json
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from dbos import DBOS, DBOSClient
from sqlalchemy import make_url

from benchmarks.imports.steps import Steps, open_steps
from benchmarks.stopwatch import Cost, Stopwatch
from workers.imports.messages import read_message
from workflows.imports.runs import HandlerOutcome, ImportPlan, Preparation

AT_ONCE = 16
POLLING_SECONDS = 0.02
_WORKFLOW = "import_document"


class Documents:
    """Counts the documents that are done."""

    def __init__(self) -> None:
        self._done = 0
        self._changed = asyncio.Condition()

    async def one_more(self) -> None:
        """Count."""
        async with self._changed:
            self._done += 1
            self._changed.notify_all()

    async def reach(self, count: int) -> None:
        """Wait until so many are done."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._done >= count)


def define(steps: Steps, documents: Documents) -> Callable[[str], Awaitable[None]]:
    """The workflow; its steps hand JSON to each other, as docflow's do."""

    @DBOS.step()
    async def prepare(body: str) -> str:
        return (await steps.prepare(read_message(body.encode()))).model_dump_json()

    @DBOS.step()
    async def load(body: str, plan: str) -> str:
        message = read_message(body.encode())
        outcome = await steps.load(message, ImportPlan.model_validate_json(plan))
        return outcome.model_dump_json()

    @DBOS.step()
    async def finish(body: str, plan: str, outcome: str) -> None:
        await steps.finish(
            read_message(body.encode()),
            ImportPlan.model_validate_json(plan),
            HandlerOutcome.model_validate_json(outcome),
        )

    @DBOS.workflow(name=_WORKFLOW)
    async def import_document(body: str) -> None:
        preparation = Preparation.model_validate_json(await prepare(body))
        if preparation.outcome is None and preparation.plan is not None:
            plan = preparation.plan.model_dump_json()
            await finish(body, plan, await load(body, plan))
        await documents.one_more()

    return import_document


async def run(warm: Sequence[bytes], bodies: Sequence[bytes]) -> Cost:
    """Import all; what `bodies` took."""
    documents = Documents()
    async with open_steps(dict(os.environ)) as steps, _launched(steps, documents) as client:
        name = Path(sys.argv[1]).stem
        for queue, part in ((f"{name}-warm", warm), (name, bodies)):
            for body in part:
                await client.enqueue_async(
                    {"queue_name": queue, "workflow_name": _WORKFLOW}, body.decode()
                )
        await _serve(f"{name}-warm")
        await documents.reach(len(warm))
        watch = Stopwatch()
        await _serve(name)
        await documents.reach(len(warm) + len(bodies))
        return watch.read()


async def _serve(queue: str) -> None:
    await DBOS.register_queue_async(
        queue, worker_concurrency=AT_ONCE, polling_interval_sec=POLLING_SECONDS
    )


@asynccontextmanager
async def _launched(steps: Steps, documents: Documents) -> AsyncGenerator[DBOSClient]:
    system = make_url(os.environ["DATABASE_URL"]).set(database="dbos")
    url = system.render_as_string(hide_password=False)
    DBOS(
        config={
            "name": "docflow-benchmark",
            "system_database_url": url,
            "log_level": "WARNING",
        }
    )
    define(steps, documents)
    DBOS.launch()
    client = DBOSClient(system_database_url=url)
    try:
        yield client
    finally:
        client.destroy()
        DBOS.destroy()


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_bytes().splitlines()
    first = int(sys.argv[2])
    cost = asyncio.run(run(lines[:first], lines[first:]))
    print(json.dumps(dataclasses.asdict(cost)))
