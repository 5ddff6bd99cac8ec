"""Runs of all pipelines, for those who may see them."""

from collections.abc import Sequence
from dataclasses import replace

from adapters.database.runs import SqlRuns
from workers import catalogue
from workers.shared.register import Audience, recognise
from workers.shared.services.errors import NotFound, no_role
from workers.shared.services.identity import Identity
from workflows.shared.runs import RunFilter, RunRecord, Visible


class RunService:
    """What people see of runs.

    Args:
        rows: The table of runs.
    """

    def __init__(self, rows: SqlRuns) -> None:
        self._rows = rows

    async def list(self, who: Identity, wanted: RunFilter) -> Sequence[RunRecord]:
        """Runs that a person may see, the newest change first.

        Raises:
            Forbidden: The person has no role.
        """
        return await self._rows.list(replace(wanted, visible=visible_to(who)))

    async def get(self, who: Identity, id: str) -> RunRecord:
        """One run.

        Raises:
            Forbidden: The person has no role.
            NotFound: There is none of this id that the person may see.
        """
        found = await self._rows.get(id, visible_to(who))
        if found is None:
            raise NotFound(f"there is no run {id}")
        return found

    def answers(self, run: RunRecord) -> Sequence[str]:
        """Answers that a run offers while it is open."""
        known = recognise(catalogue.run_groups(), run.answers_at)
        return [] if known is None or not run.is_open else list(known.kind.verbs)


def visible_to(who: Identity) -> Visible:
    """Which runs a person may see: operators those of every pipeline.

    Raises:
        Forbidden: The person has no role.
    """
    if not who.may_read:
        raise no_role()
    shared = [each.name for each in catalogue.PIPELINES if each.audience is Audience.ORGANISATION]
    return Visible(who.organisations, shared, others=who.is_operator)
