"""What people send: camelCase names, read strictly."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from contracts.spreadsheets import (
    COLUMNS,
    DECISIONS,
    CellDecision,
    ColumnDecision,
    EntityId,
    FieldName,
    Person,
)
from workers.services.bodies import Body


class ColumnDecisionBody(Body):
    """A decision about one column: exactly one of targetField, confirm and ignore."""

    id: int = Field(ge=1, le=COLUMNS)
    target_field: FieldName | None = None
    confirm: bool = False
    ignore: bool = False

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        if sum((self.target_field is not None, self.confirm, self.ignore)) != 1:
            raise ValueError("set exactly one of targetField, confirm and ignore")
        return self

    def decision(self) -> ColumnDecision:
        """As runs know it."""
        return ColumnDecision(
            id=self.id, target=self.target_field, confirm=self.confirm, ignore=self.ignore
        )


class CellDecisionBody(Body):
    """A decision about one value: exactly one of the four."""

    id: int = Field(ge=1, le=2**53)
    target_entity_id: EntityId | None = None
    confirm: bool = False
    ignore: bool = False
    create: bool = False

    @model_validator(mode="after")
    def _one_of_four(self) -> Self:
        choices = (self.target_entity_id is not None, self.confirm, self.ignore, self.create)
        if sum(choices) != 1:
            raise ValueError("set exactly one of targetEntityId, confirm, ignore and create")
        return self

    def decision(self) -> CellDecision:
        """As runs know it."""
        return CellDecision(
            id=self.id,
            target_id=self.target_entity_id,
            confirm=self.confirm,
            ignore=self.ignore,
            create=self.create,
        )


ColumnDecisionsBody = Annotated[list[ColumnDecisionBody], Field(min_length=1, max_length=COLUMNS)]
CellDecisionsBody = Annotated[list[CellDecisionBody], Field(min_length=1, max_length=DECISIONS)]


class AssigneeBody(Body):
    """Another person to wait for."""

    to: Person = Field(min_length=1)
    notify: Annotated[str, Field(max_length=320, pattern=r"^[^@\s]+@[^@\s]+$")] | None = None
    """Mail address."""
