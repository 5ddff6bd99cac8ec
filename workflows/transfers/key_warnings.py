"""Notifies people of keys of partners that expire; started by a schedule, once a day."""

from functools import partial

from temporalio import workflow

from activities.transfers.key_expiry import KeyExpiry
from contracts.notices import NoticeKind, notice_id
from contracts.transfers.key_expiry import KeysTold, KeyWarnings, KeyWarningsOrder
from workflows import policies
from workflows.notices import Notices
from workflows.waiting import Waiting


@workflow.defn(name="PartnerKeyWarnings")
class PartnerKeyWarnings:
    """Sends one notice for each key and step: 30, 14 and 7 days before its end, and after it."""

    @workflow.run
    async def run(self, order: KeyWarningsOrder) -> KeysTold:
        """Look once; notices that were sent before are not sent again."""
        notices = Notices(order.notices)
        while found := (await Waiting().done(partial(_found, order))).warnings:
            for warning in found:
                id = notice_id(
                    "key", warning.partner, warning.key, warning.ends.date(), warning.step
                )
                await notices.once(
                    notices.order(NoticeKind.NEEDS_YOU, "expiring", warning.sentence, id=id)
                )
            order = order.model_copy(update={"skip": order.skip + len(found)})
        return KeysTold(keys=order.skip)


async def _found(order: KeyWarningsOrder) -> KeyWarnings:
    return await workflow.execute_activity_method(
        KeyExpiry.expiring_keys, order, summary="keys that expire", **policies.LONG
    )
