"""Which answers a transfer takes, as its row and its run say."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from activities.transfers.records import Transfer
from tests.support.transfers.events import a_job_order, a_transfer
from workers.transfers.service import offers
from workflows.transfers.events import TransferStatus
from workflows.transfers.runs import ActionView, KeptTransfer, Manifest, TransferView

ID = "5eed5eed" * 8
NOW = datetime.now(UTC)
READ, WRITE = ("ReadFile", "parked"), ("WriteFile", "parked")


def details(
    status: TransferStatus,
    *actions: tuple[str, str],
    parked: bool = True,
    has_run: bool = True,
    **row: Any,
) -> Transfer:
    views = tuple(ActionView(action=action, state=state) for action, state in actions)
    view = TransferView(transfer_id=ID, status=status, actions=views, since=NOW if parked else None)
    row = {"view": view if has_run else None, **row}
    return a_transfer(ID, status, at=NOW, **row)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (details(TransferStatus.NO_ASSIGNED), "assign reroute skip fail"),
        (details(TransferStatus.READ_MESSAGE), "assign retry fail cancel"),
        (details(TransferStatus.READ_MESSAGE, READ), "retry correct fail cancel"),
        (details(TransferStatus.READ_MESSAGE, WRITE), "retry correct skip fail cancel"),
        (details(TransferStatus.READ_MESSAGE, ("ReadFile", "open")), "retry fail cancel"),
        (details(TransferStatus.READ_MESSAGE, ("ReadFile", "running"), parked=False), "cancel"),
        (details(TransferStatus.READ_MESSAGE, has_run=False), ""),
        (details(TransferStatus.FAILED, parked=False), "redrive"),
        (details(TransferStatus.FAILED, parked=False, has_run=False), "redrive"),
        (details(TransferStatus.FAILED, parked=False, run=f"transfer/{ID}"), ""),
        (details(TransferStatus.SUCCEEDED, parked=False), ""),
    ],
)
def test_offers_follow_the_state(found: Transfer, wanted: str) -> None:
    assert " ".join(offers(found)) == wanted


@pytest.mark.parametrize(("until", "wanted"), [(date.max, ["resend"]), (date.min, [])])
def test_a_copy_is_sent_again_while_it_is_kept(until: date, wanted: list[str]) -> None:
    kept = KeptTransfer(files=Manifest(), until=until, event=a_job_order().event)
    found = details(TransferStatus.SUCCEEDED, parked=False, kept=kept)
    assert [*offers(found)] == wanted
