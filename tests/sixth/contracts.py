"""Contracts of `parcels`, the pipeline that exists only in tests."""

from typing import Annotated

from pydantic import Field

from workflows.shared.contracts import Contract

Name = Annotated[str, Field(max_length=100)]


class ParcelInput(Contract):
    """Input of the run of one parcel."""

    parcel: Name


class ParcelWeight(Contract):
    """Result of weighing."""

    grams: int = Field(ge=0, le=10**9)


class ParcelAnswer(Contract):
    """What an operator sends to a parcel that waits."""

    by: Name | None = None


class ParcelStatus(Contract):
    """Result of the query `status`."""

    state: Name


class ParcelCount(Contract):
    """Input of the scheduled count."""

    most: int = 10
