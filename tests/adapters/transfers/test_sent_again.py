"""Kept copies that are sent again, over real tables and a real server."""

import asyncio

import pytest

from tests.support.transfers.events import (
    a_message,
)
from tests.support.transfers.installation import OLGA, Installation, ended, until
from workers.shared.services.errors import InvalidRequest, WrongState
from workflows.transfers.events import TransferStatus
from workflows.transfers.runs import resend_id

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_kept_copy_is_sent_again_to_another_partner(transfers: Installation) -> None:
    transfers.configure(KeepCopyDays=30)
    raw, id = a_message(id="resent")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.SUCCEEDED)
    sent = await transfers.service.resend(OLGA, id[:8], "acme")
    await ended(transfers, sent.transfer_id)
    second = await transfers.service.resend(OLGA, id[:8])
    await ended(transfers, second.transfer_id)
    assert len({id, sent.transfer_id, second.transfer_id}) == 3
    assert transfers.far.done[2:] == [
        ("write acme", sent.transfer_id),
        ("write store", second.transfer_id),
    ]
    assert await transfers.states(id) == ["Assigned", "ReadMessage", "Succeeded"]
    with pytest.raises(InvalidRequest, match="there is no partner 'nowhere'"):
        await transfers.service.resend(OLGA, id, "nowhere")
    assert await transfers.store.get(resend_id(id, 3)) is None


async def test_copies_that_are_sent_again_at_once_are_all_sent(transfers: Installation) -> None:
    transfers.configure(KeepCopyDays=30)
    raw, id = a_message(id="resent-at-once")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.SUCCEEDED)
    sent = await asyncio.gather(*(transfers.service.resend(OLGA, id) for _ in range(3)))
    assert all(each.created for each in sent)
    assert {each.transfer_id for each in sent} == {resend_id(id, number) for number in (1, 2, 3)}
    for each in sent:
        await ended(transfers, each.transfer_id)
    assert len(transfers.far.done[2:]) == 3


async def test_only_a_kept_copy_is_sent_again(transfers: Installation) -> None:
    raw, id = a_message(id="not-kept")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.SUCCEEDED)
    with pytest.raises(WrongState, match="no copy was kept"):
        await transfers.service.resend(OLGA, id)
