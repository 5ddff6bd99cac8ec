"""How often an action is tried again before a person is asked."""

from datetime import timedelta

from temporalio.exceptions import ApplicationError

from workflows.shared.errors import PERMANENT, WORKERS_LOST
from workflows.transfers.attempts import Attempts
from workflows.transfers.settings import Actions, ReadFile


def test_an_action_that_lost_its_workers_is_not_tried_again() -> None:
    action = ReadFile(partner="acme", path="in/a.csv")
    attempts = Attempts(action, Actions(list=(action,)))
    lost = ApplicationError("20 workers in a row were lost", type=WORKERS_LOST)
    assert attempts.pause_after(lost) is None
    assert attempts.pause_after(ApplicationError("empty", type=PERMANENT)) == timedelta(seconds=5)
