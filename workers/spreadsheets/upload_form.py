"""What an upload consists of: a file and its fields, wherever they come from."""

from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager
from datetime import date
from enum import Enum
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Protocol, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from adapters.files.tables.formats import refuse_head
from adapters.ports.errors import UnreadableDocument
from workers.shared.services.bodies import Body
from workers.shared.services.errors import Refused, UnsupportedFile
from workflows.shared.contracts import problem_text
from workflows.shared.fields import LINE_CHARACTERS
from workflows.spreadsheets.mappings import EntityId, Layout
from workflows.spreadsheets.runs import ScopeName, ScopeValue

EMPTY_FILE: Final = "the file is empty; choose another"


SCOPE: Final = "scope."
"""What the names of fields begin with that all rows share."""


class Upload(Protocol):
    """A form with one file: some fields are known after `open`, all of them after `finish`."""

    filename: str
    """As the sender named it, without folders."""

    async def open(self) -> None:
        """Read up to the beginning of the file."""
        ...

    def file(self) -> AsyncGenerator[bytes]:
        """The bytes of the file, once their beginning has passed `check_beginning`."""
        ...

    async def finish(self) -> Mapping[str, str]:
        """Read what follows the file; all fields."""
        ...


def check_beginning(head: bytes, filename: str) -> None:
    """Refuse a file whose beginning is not that of a spreadsheet.

    Args:
        head: The first `HEAD_BYTES` of the file, or all of it.
        filename: As the sender named it.

    Raises:
        Refused: It is empty.
        UnsupportedFile: It looks like something else.
    """
    if not head:
        raise Refused(EMPTY_FILE)
    try:
        refuse_head(head, filename)
    except UnreadableDocument as error:
        raise UnsupportedFile(str(error)) from error


@contextmanager
def refused_if_invalid() -> Generator[None]:
    """Read what people have sent.

    Raises:
        Refused: It does not fit its model; the sentence says what is wrong, and repeats none of it.
    """
    try:
        yield
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)[:5]
        raise Refused(
            "; ".join(
                f"{'.'.join(map(str, each['loc'])) or 'body'}: {problem_text(each)}"
                for each in found
            )
        ) from None


def _blank_is_absent(value: object) -> object:
    return None if value == "" else value


def _tab(value: object) -> object:
    return "\t" if value in ("tab", "\\t") else _blank_is_absent(value)


_ENCODING = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,31}$"
_Absent = BeforeValidator(_blank_is_absent)


STRICTLY: Final = ConfigDict(extra="forbid", frozen=True)
"""Of what people send: an unknown field is a mistake."""


class StrictBody(BaseModel):
    """What people send, read strictly; its fields have the names that they have in Python."""

    model_config = STRICTLY


class LayoutFields(StrictBody):
    """How a file is read; what is absent is found out."""

    sheet: Annotated[Annotated[str, Field(max_length=100)] | None, _Absent] = Field(
        None, description="Sheet that is read", examples=["Registrations"]
    )
    encoding: Annotated[Annotated[str, Field(pattern=_ENCODING)] | None, _Absent] = Field(
        None, description="Encoding of a text file", examples=["cp1252"]
    )
    delimiter: Annotated[
        Annotated[str, Field(min_length=1, max_length=1)] | None, BeforeValidator(_tab)
    ] = Field(None, description="What separates cells of a text file", examples=[";"])
    header_line: Annotated[Annotated[int, Field(ge=1, le=1_048_576)] | None, _Absent] = Field(
        None, description="Line of the headers, from 1", examples=[3]
    )

    no_header: Annotated[bool, BeforeValidator(lambda value: value or False)] = Field(
        False,
        description="There is no header row: columns are called by their letters",
        examples=[True],
    )

    def layout(self) -> Layout:
        """As runs know it."""
        return Layout(
            sheet=self.sheet,
            encoding=self.encoding,
            delimiter=self.delimiter,
            header_line=None if self.no_header else self.header_line,
            no_header=self.no_header,
        )


class UploadFields(LayoutFields):
    """Fields of an upload beside its file; every one of them is text there.

    Forms of pages and of `/api/imports` call them in camelCase.
    """

    model_config = Body.model_config

    import_type: Annotated[str, StringConstraints(min_length=1, max_length=LINE_CHARACTERS)]
    context_id: Annotated[EntityId | None, _Absent] = None
    organisation_id: Annotated[EntityId | None, _Absent] = None
    auto_start: Annotated[bool, BeforeValidator(lambda value: value or False)] = False
    dry_run: Annotated[bool, BeforeValidator(lambda value: value or False)] = False
    review: Annotated[bool, BeforeValidator(lambda value: value or False)] = False
    scope: dict[ScopeName, ScopeValue] = Field(default_factory=dict, max_length=8)
    """What all rows of a declared type share: fields `scope.NAME` of a form."""


_NEEDED: Final = MappingProxyType(
    {
        "events": "starts_on",
        "membership_periods": "starts_on",
        "races": "event_id",
        "custom_lists": "key",
    }
)
"""What each table of contexts needs beside a name."""


class NewContext(StrictBody):
    """An event, a membership period, a race or a custom list that is to be made."""

    table: Literal["events", "membership_periods", "races", "custom_lists"] = Field(
        description="What it is", examples=["events"]
    )
    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] = Field(
        max_length=200, description="As people see it", examples=["City Marathon"]
    )
    starts_on: Annotated[date | None, _Absent] = Field(
        None, description="First day of an event or membership period", examples=["2026-05-10"]
    )
    event_id: Annotated[EntityId | None, _Absent] = Field(
        None, description="Event that a race belongs to", examples=[7]
    )
    key: Annotated[
        Annotated[str, StringConstraints(pattern="^[A-Z0-9_]{1,52}$")] | None, _Absent
    ] = Field(None, description="Key of a custom list", examples=["SHIRT_SIZE"])
    open: Annotated[bool, BeforeValidator(lambda value: value or False)] = Field(
        False, description="People may add choices to the custom list", examples=[True]
    )
    organisation_id: Annotated[EntityId | None, _Absent] = Field(
        None, description="The first one of your token when absent", examples=[1]
    )

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        needed = _NEEDED[self.table]
        for name in {*_NEEDED.values()}:
            is_given = getattr(self, name) is not None
            if is_given != (name == needed):
                said = f"have no {name}; remove it" if is_given else f"need {name}; add it"
                raise ValueError(f"{self.table} {said}")
        return self

    @property
    def values(self) -> Mapping[str, Any]:
        """Column to value, beside the organisation."""
        needed = _NEEDED[self.table]
        values = {"name": self.name, needed: getattr(self, needed)}
        return {**values, "open": self.open} if self.table == "custom_lists" else values


class Naming(Enum):
    """How a form calls its fields."""

    CAMEL = "importType"
    SNAKE = "import_type"

    def __call__(self, name: str) -> str:
        """What the form calls a field of `UploadFields`."""
        return to_camel(name) if self is Naming.CAMEL else name


def read_fields(fields: Mapping[str, str], naming: Naming = Naming.CAMEL) -> UploadFields:
    """Check the fields of an upload.

    Args:
        fields: As they were sent.
        naming: How they are called.

    Raises:
        Refused: One is missing, wrong or unknown; the message names it.
    """
    given: dict[str, object] = {k: v for k, v in fields.items() if not k.startswith(SCOPE)}
    scope = {k.removeprefix(SCOPE): v for k, v in fields.items() if k.startswith(SCOPE) and v}
    with refused_if_invalid():
        return UploadFields.model_validate(
            {**given, "scope": scope},
            by_alias=naming is Naming.CAMEL,
            by_name=True,
        )
