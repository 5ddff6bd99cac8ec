"""What people send: camelCase names, read strictly."""

from typing import Annotated, Any, Literal, Self, cast

from pydantic import Field, RootModel, model_validator

from contracts.spreadsheets import (
    COLUMNS,
    DECISIONS,
    RULES,
    CellDecision,
    CellRule,
    CellText,
    ColumnDecision,
    EntityId,
    FieldName,
    Header,
    Person,
    QuestionKind,
    TypeName,
)
from contracts.spreadsheets.reviews import KINDS, ROWS, Operation, RowNumber
from domain.spreadsheets.decisions import CHOICES, has_one_choice
from domain.spreadsheets.value_rules import malformed
from workers.gateway.spreadsheets.descriptions import DESCRIBED
from workers.gateway.spreadsheets.schemas import mapping_status
from workers.services.bodies import Body


class ColumnDecisionBody(Body):
    """A decision about one column: exactly one of targetField, confirm, ignore and reset."""

    model_config = DESCRIBED

    id: int = Field(ge=1, le=COLUMNS)
    target_field: FieldName | None = None
    confirm: bool = False
    ignore: bool = False
    reset: bool = False

    @model_validator(mode="after")
    def _one_of_four(self) -> Self:
        if sum((self.target_field is not None, self.confirm, self.ignore, self.reset)) != 1:
            raise ValueError("set exactly one of targetField, confirm, ignore and reset")
        return self

    def decision(self) -> ColumnDecision:
        """As runs know it."""
        return ColumnDecision(
            id=self.id,
            target=self.target_field,
            confirm=self.confirm,
            ignore=self.ignore,
            reset=self.reset,
        )


class RowDecisionsBody(Body):
    """Rows that are imported although they look like no people, or that are left out."""

    model_config = DESCRIBED

    rows: Annotated[list[RowNumber], Field(min_length=1, max_length=ROWS)] = Field(
        description="Numbers of the rows", examples=[[13]]
    )
    keep: bool = False


class CellDecisionBody(Body):
    """A decision about one value: exactly one of the five, and whether it is for all."""

    model_config = DESCRIBED

    id: int = Field(ge=1, le=2**53)
    target_entity_id: EntityId | None = None
    confirm: bool = False
    ignore: bool = False
    create: bool = False
    reset: bool = False
    for_all: bool = False

    @model_validator(mode="after")
    def _one_of_five(self) -> Self:
        if not has_one_choice(self.decision()):
            raise ValueError(f"set exactly one of {CHOICES}")
        return self

    def decision(self) -> CellDecision:
        """As runs know it."""
        return CellDecision(
            id=self.id,
            target_id=self.target_entity_id,
            confirm=self.confirm,
            ignore=self.ignore,
            create=self.create,
            reset=self.reset,
            for_all=self.for_all,
        )


ColumnDecisionsBody = Annotated[list[ColumnDecisionBody], Field(min_length=1, max_length=COLUMNS)]


class CellRuleBody(Body):
    """One answer for every value that matches: exactly one of the five, and which are meant."""

    target_field: FieldName | None = Field(
        None,
        description="Field whose values are meant; null: every field, without questions about "
        "people. `create` and `targetEntityId` need one.",
        examples=["EVENT_CATEGORY_NAME"],
    )
    text: CellText = Field(
        "",
        description="Part of the value; case, accents and punctuation do not count",
        examples=["junior"],
    )
    status: Literal["AUTO_MATCHED", "MANUAL_MATCHED", "UNRESOLVED", "IGNORED", "ALL"] = Field(
        "UNRESOLVED", description="What is decided about the values so far", examples=["UNRESOLVED"]
    )
    question: QuestionKind | None = Field(
        None, description="Of questions about people: this kind only", examples=["MAIL_MISSING"]
    )
    min_score: float = Field(
        0,
        ge=0,
        le=1,
        description="With `confirm`: values whose match or first alternative scores at least this",
        examples=[0.9],
    )
    target_entity_id: EntityId | None = Field(None, description="Row that all mean", examples=[43])
    confirm: bool = Field(
        False,
        description="The match is right; where there is none, the first alternative is",
        examples=[True],
    )
    ignore: bool = Field(False, description="They count as empty", examples=[False])
    create: bool = Field(False, description="A row is made for each", examples=[False])
    reset: bool = Field(False, description="Decisions are taken back", examples=[False])

    @model_validator(mode="after")
    def _well_formed(self) -> Self:
        if reason := malformed(self.rule()):
            raise ValueError(reason)
        return self

    def rule(self) -> CellRule:
        """As runs know it."""
        return CellRule(
            field=self.target_field,
            text=self.text,
            status=None if self.status == "ALL" else mapping_status(self.status),
            question=self.question,
            min_score=self.min_score,
            target_id=self.target_entity_id,
            confirm=self.confirm,
            ignore=self.ignore,
            create=self.create,
            reset=self.reset,
        )


CellRulesBody = Annotated[list[CellRuleBody], Field(min_length=1, max_length=RULES)]
CellDecisionsBody = Annotated[list[CellDecisionBody], Field(min_length=1, max_length=DECISIONS)]


class LearntColumnBody(Body):
    """What a header means from now on: a field, or that such columns are left out."""

    model_config = DESCRIBED

    organisation_id: int | None = Field(default=None, ge=1, le=2**53)
    """The first one of the token when absent."""
    import_type: TypeName
    header: Header = Field(min_length=1)
    target_field: FieldName | None = None
    ignore: bool = False

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.target_field is not None) == self.ignore:
            raise ValueError("set exactly one of targetField and ignore")
        return self


class LearntValueBody(Body):
    """What a value means from now on: a row by its name, or that it is left empty."""

    model_config = DESCRIBED

    organisation_id: int | None = Field(default=None, ge=1, le=2**53)
    """The first one of the token when absent."""
    import_type: TypeName
    target_field: FieldName
    source_value: CellText = Field(min_length=1)
    target_name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    ignore: bool = False

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.target_name is not None) == self.ignore:
            raise ValueError("set exactly one of targetName and ignore")
        return self


class AssigneeBody(Body):
    """Another person to wait for."""

    model_config = DESCRIBED

    to: Person = Field(min_length=1)
    notify: Annotated[str, Field(max_length=320, pattern=r"^[^@\s]+@[^@\s]+$")] | None = None
    """Mail address."""


class ChangeBody(RootModel[Operation]):
    """A change of the rows of a review; a field that its kind does not have is a mistake."""

    @model_validator(mode="before")
    @classmethod
    def _without_unknown(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        sent = cast("dict[str, Any]", given)
        known = KINDS.get(str(sent.get("kind")))
        unknown = sorted(sent.keys() - known.model_fields.keys()) if known else []
        if unknown:
            raise ValueError(f"a change of this kind has no {', '.join(unknown)}"[:200])
        return sent
