"""What people send: camelCase names, read strictly."""

from typing import Annotated, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from contracts.spreadsheets import (
    COLUMNS,
    DECISIONS,
    CellDecision,
    ColumnDecision,
    EntityId,
    FieldName,
    Layout,
    Person,
    TypeName,
)


class Wire(BaseModel):
    """Read strictly: a field that nobody knows is a mistake worth telling."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        serialize_by_alias=True,
        extra="forbid",
        frozen=True,
    )


def problems_of(error: ValidationError) -> str:
    """What is wrong with some input, in a sentence that repeats none of it."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[:5]
    return "; ".join(
        f"{'.'.join(map(str, each['loc'])) or 'body'}: {_plain(each['msg'])}" for each in first
    )


def _plain(message: str) -> str:
    return message.removeprefix("Value error, ")


def _blank_is_absent(value: object) -> object:
    return None if value == "" else value


def _tab(value: object) -> object:
    return "\t" if value in ("tab", "\\t") else _blank_is_absent(value)


_ENCODING = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,31}$"
_Absent = BeforeValidator(_blank_is_absent)


class LayoutBody(Wire):
    """How a file is read; what is absent is found out."""

    sheet: Annotated[Annotated[str, Field(max_length=100)] | None, _Absent] = None
    encoding: Annotated[Annotated[str, Field(pattern=_ENCODING)] | None, _Absent] = None
    delimiter: Annotated[
        Annotated[str, Field(min_length=1, max_length=1)] | None, BeforeValidator(_tab)
    ] = None
    header_line: Annotated[Annotated[int, Field(ge=1, le=1_048_576)] | None, _Absent] = None

    def layout(self) -> Layout:
        """As runs know it."""
        return Layout(
            sheet=self.sheet,
            encoding=self.encoding,
            delimiter=self.delimiter,
            header_line=self.header_line,
        )


class UploadFields(LayoutBody):
    """Fields of an upload beside its file; every one of them is text there."""

    import_type: TypeName
    context_id: Annotated[EntityId | None, _Absent] = None
    organisation_id: Annotated[EntityId | None, _Absent] = None
    auto_start: Annotated[bool, BeforeValidator(lambda value: value or False)] = False
    dry_run: Annotated[bool, BeforeValidator(lambda value: value or False)] = False


class ColumnDecisionBody(Wire):
    """What a person says about one column: exactly one of targetField, confirm and ignore."""

    id: int = Field(ge=1, le=COLUMNS)
    target_field: FieldName | None = None
    confirm: bool = False
    ignore: bool = False

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        if sum((self.target_field is not None, self.confirm, self.ignore)) != 1:
            raise ValueError("say exactly one of targetField, confirm and ignore")
        return self

    def decision(self) -> ColumnDecision:
        """As runs know it."""
        return ColumnDecision(
            id=self.id, target=self.target_field, confirm=self.confirm, ignore=self.ignore
        )


class CellDecisionBody(Wire):
    """What a person says about one value: exactly one of the four."""

    id: int = Field(ge=1, le=2**53)
    target_entity_id: EntityId | None = None
    confirm: bool = False
    ignore: bool = False
    create: bool = False

    @model_validator(mode="after")
    def _one_of_four(self) -> Self:
        said = (self.target_entity_id is not None, self.confirm, self.ignore, self.create)
        if sum(said) != 1:
            raise ValueError("say exactly one of targetEntityId, confirm, ignore and create")
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


class AssigneeBody(Wire):
    """Somebody else to wait for."""

    to: Person = Field(min_length=1)
    notify: Annotated[str, Field(max_length=320, pattern=r"^[^@\s]+@[^@\s]+$")] | None = None
    """Mail address."""
