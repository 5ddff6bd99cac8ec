"""Steps that ask again while the cloud is still busy."""

import pytest

from activities.batches.validation import to_its_end
from adapters.ports.errors import Denied, NotYet
from tests.support.imports.activities import environment


class Busy:
    """A call that fails, and counts how often it was made."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked = 0

    @to_its_end
    async def call(self) -> str:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return "done"


async def test_a_step_ends() -> None:
    busy = Busy()
    assert await environment().run(busy.call) == "done"
    assert busy.asked == 1


@pytest.mark.parametrize("error", [NotYet("pending", 0.01), Denied("no")])
async def test_what_takes_a_moment_is_left_to_the_server_and_takes_no_slot(
    error: Exception,
) -> None:
    busy = Busy(error)
    with pytest.raises(type(error)):
        await environment().run(busy.call)
    assert busy.asked == 1
