"""What jobs wait for without a person: an outage, or tasks that are not ready or throttled."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from contracts.base import Contract


class JobWait(Contract):
    """A wait that ends by itself."""

    what: Annotated[str, Field(max_length=400)]
    """It follows "waits for", and says why."""
    since: datetime
    outage: Annotated[str, Field(max_length=200)] | None = None
    """Workflow id of the outage that is waited for; None: tasks are tried again later."""
