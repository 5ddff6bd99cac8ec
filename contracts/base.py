"""What every contract shares."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Contract(BaseModel):
    """An immutable value that crosses a boundary: a message, an input, an update, a result.

    New fields come with defaults only, so that histories written by an older release still
    decode; fields of a newer release are ignored.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")


class WireContract(Contract):
    """A message from or for an external system; its fields are camelCase there."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True
    )
