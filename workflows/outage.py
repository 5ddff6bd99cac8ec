"""One outage of something that docflow itself needs, from the first failed check to its end."""

import asyncio
from datetime import datetime, timedelta
from typing import Final

from temporalio import workflow

from activities.dependencies import Dependencies
from contracts.dependencies import (
    OUTAGE,
    OUTAGES,
    PROBLEM,
    SETTINGS,
    Awaited,
    OutageOrder,
    OutageState,
    OutageStatus,
    Recovery,
)
from contracts.notices import NoticeKind
from workflows import attributes, policies
from workflows.notices import Notices

ANNOUNCED_AFTER: Final = timedelta(minutes=2)
"""Shorter outages are not news."""
NEEDS_ATTENTION_AFTER: Final = timedelta(minutes=15)
CHANGES_SHOWN: Final = 20
"""Changes of the problem: one that comes and goes for days must not fill the history."""


@workflow.defn(name=OUTAGE)
class Outage:
    """Says what is down, since when and why; ends when it answers.

    Runs that wait need no answer. This run asks for attention when the outage lasts.
    """

    @workflow.init
    def __init__(self, order: OutageOrder) -> None:
        self._order = order
        self._ended: datetime | None = None
        self._notices = Notices(order.notices)

    @workflow.run
    async def run(self, order: OutageOrder) -> OutageStatus:
        """Wait for the end of the outage."""
        self._show(OutageState.OPEN)
        checking = asyncio.create_task(self._wait())
        is_short = await _ends_within(checking, ANNOUNCED_AFTER)
        announcing: asyncio.Task[object] | None = None
        if not is_short:
            workflow.logger.warning("%s", self._sentence)
            if self._notices.enabled:
                begun = self._notices.order(
                    NoticeKind.OUTAGE, "open", self._sentence, waiting_since=order.since
                )
                announcing = asyncio.create_task(self._notices.send(begun))
            if not await _ends_within(checking, NEEDS_ATTENTION_AFTER - ANNOUNCED_AFTER):
                self._ask_operators()
        await checking
        self._ended = workflow.now()
        if announcing is not None:
            announcing.cancel()
        if not is_short:
            lasted = timedelta(seconds=round((self._ended - order.since).total_seconds()))
            over = f"the {order.label} answers again, after {lasted}"
            workflow.logger.warning("%s", over)
            await self._notices.end(NoticeKind.OUTAGE, "over", over)
        workflow.upsert_search_attributes(attributes.not_waiting(OutageState.OVER))
        workflow.set_current_details("")
        return self.status()

    async def _wait(self) -> None:
        """Wait until the dependency answers; another problem meanwhile is shown."""
        changes = 0
        while True:
            known = self._order if changes < CHANGES_SHOWN else None
            found = await workflow.execute_activity_method(
                Dependencies.wait,
                Awaited(
                    dependency=self._order.dependency,
                    name=self._order.name,
                    room=self._order.room,
                    problem=known and known.problem,
                    settings=known.settings if known else (),
                ),
                summary=f"wait for the {self._order.label}",
                **policies.DEPENDENCY,
            )
            if found.problem is None:
                return
            changes += 1
            self._change(found)

    def _change(self, found: Recovery) -> None:
        self._order = self._order.model_copy(
            update={"problem": found.problem, "settings": found.settings}
        )
        workflow.logger.warning("%s", self._sentence)
        # Status and lists read it there, without a worker.
        workflow.upsert_memo({PROBLEM: found.problem, SETTINGS: list(found.settings)})
        self._show_details()

    def _show(self, state: str) -> None:
        workflow.upsert_search_attributes(
            [
                attributes.PIPELINE.value_set(OUTAGES),
                attributes.DOCUMENT_TYPE.value_set(self._order.dependency),
                *attributes.not_waiting(state),
            ]
        )
        self._show_details()

    def _show_details(self) -> None:
        workflow.set_current_details(
            f"**Outage**: {self._sentence}\n\n"
            "Runs that need it have the state `waiting` and continue by themselves."
        )

    def _ask_operators(self) -> None:
        workflow.logger.error("%s", self._sentence)
        workflow.upsert_search_attributes(
            attributes.waiting(OutageState.OPEN, self._order.since, attributes.OPERATORS)
        )

    @property
    def _sentence(self) -> str:
        order = self._order
        text = (
            f"the {order.label} cannot be used since {order.since:%Y-%m-%d %H:%M} UTC: "
            f"{order.problem}"
        )
        if not order.settings:
            return text
        return f"{text}; this is not an outage but a setting: check {' and '.join(order.settings)}"

    @workflow.query(name="status")
    def status(self) -> OutageStatus:
        """What is down, since when and why."""
        return OutageStatus(
            dependency=self._order.dependency,
            name=self._order.name,
            since=self._order.since,
            problem=self._order.problem,
            settings=self._order.settings,
            ended=self._ended,
        )


async def _ends_within(checking: asyncio.Task[None], time: timedelta) -> bool:
    try:
        await workflow.wait_condition(checking.done, timeout=time, timeout_summary="outage lasts")
    except TimeoutError:
        return False
    return True
