"""What people do with schedules: list them, pause, resume and trigger them."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from workers.shared.errors import TemporalUnreachable
from workers.shared.schedules import (
    Declared,
    ScheduleView,
    declared_schedules,
    look,
    pause,
    trigger,
)
from workers.shared.services.errors import NotFound, TemporalUnavailable
from workers.shared.services.identity import Identity, require_operator
from workers.shared.services.runs import temporal_errors


class ScheduleService:
    """Operations on declared schedules; a refusal is a `ServiceError`.

    Args:
        client: Of Temporal.
        environment: Settings that declare some.
    """

    def __init__(self, client: Client, environment: Mapping[str, str]) -> None:
        self._client, self._environment = client, environment

    async def list(self, who: Identity) -> Sequence[ScheduleView]:
        """All schedules that docflow and the settings declare, and how Temporal has them."""
        require_operator(who, "schedules")
        return await self._look(self._declared())

    async def get(self, who: Identity, id: str) -> ScheduleView:
        """One schedule.

        Raises:
            NotFound: None is declared with this id.
        """
        require_operator(who, "schedules")
        declared = self._declared()
        if id not in declared:
            raise NotFound(f"no schedule {id!r} is declared")
        [found] = await self._look({id: declared[id]})
        return found

    async def pause(
        self, who: Identity, id: str, reason: str | None = None, *, paused: bool
    ) -> ScheduleView:
        """Pause a schedule, or resume it; its note says who did it, and why.

        Raises:
            NotFound: None is declared with this id, or Temporal does not have it yet.
        """
        await self.get(who, id)
        done = "paused" if paused else "resumed"
        with _errors(id):
            await pause(self._client, id, _note(who, done, reason), paused=paused)
        return await self.get(who, id)

    async def trigger(self, who: Identity, id: str, reason: str | None = None) -> ScheduleView:
        """Start a run now; the note of the schedule says who did it, and why.

        Raises:
            NotFound: None is declared with this id, or Temporal does not have it yet.
        """
        await self.get(who, id)
        with _errors(id):
            await trigger(self._client, id, _note(who, "triggered", reason))
        return await self.get(who, id)

    def _declared(self) -> Mapping[str, Declared]:
        return declared_schedules(environment=self._environment)

    async def _look(self, declared: Mapping[str, Declared]) -> Sequence[ScheduleView]:
        try:
            return await look(self._client, declared)
        except TemporalUnreachable as error:
            raise TemporalUnavailable(str(error)) from error


def _note(who: Identity, done: str, reason: str | None) -> str:
    return f"{who.subject} {done} it" + (f": {reason}" if reason else "")


@contextmanager
def _errors(id: str) -> Generator[None]:
    with temporal_errors():
        try:
            yield
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            raise NotFound(
                f"Temporal does not have the schedule {id} yet: a worker makes it when it starts"
            ) from error
