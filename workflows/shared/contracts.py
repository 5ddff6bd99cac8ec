"""What the contracts of every pipeline share."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, cast

from pydantic import (
    AfterValidator,
    AliasGenerator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    model_validator,
)
from pydantic.alias_generators import to_camel


def built_when_used() -> ConfigDict:
    """What has a validator built when it is first used, and not with its class.

    Every process knows the contracts of all pipelines and uses those of a few: to build all of them
    is most of what it costs to import them.
    """
    return ConfigDict(defer_build=True)


class Contract(BaseModel):
    """An immutable value that crosses a boundary: a message, an input, an update, a result.

    New fields come with defaults only, so that histories written by an older release still
    decode; fields of a newer release are ignored.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


def served(words: str, example: object, name: str | None = None) -> Any:
    """What the API says of a field, for its annotation.

    Args:
        words: What it holds.
        example: A value of it.
        name: What it is called there, if it has another name than in Python; not in contracts.
    """
    return Field(description=words, examples=[example], serialization_alias=name)


def served_as(**names: str) -> ConfigDict:
    """Configure the record of a contract: it has its fields, and the names that the API gives them.

    A contract itself has no such names: Temporal would write them into histories.
    """
    return ConfigDict(
        frozen=True,
        from_attributes=True,
        defer_build=True,
        alias_generator=AliasGenerator(
            serialization_alias=lambda name: names.get(name) or to_camel(name)
        ),
    )


def not_served() -> Any:
    """Keep a field of a record from people and programs outside, for its annotation."""
    return Field(exclude=True)


class Record(BaseModel):
    """What is stored, returned by a service, served as JSON and shown on a page.

    It is declared once: served fields are camelCase and are described with `served`.
    """

    model_config = served_as()


class PlainRecord(Record):
    """A record whose fields are served under the names that they have in Python."""

    model_config = ConfigDict(alias_generator=None)


_MEMBER: Final = re.compile(r"<\w+\.\w+: ('[^']*')>")


def problem_text(problem: Mapping[str, Any]) -> str:
    """What is wrong, of an entry of pydantic's `ValidationError.errors()`, for people."""
    # Members of an enumeration stand there as Python shows them.
    said = _MEMBER.sub(r"\1", str(problem["msg"]).removeprefix("Value error, "))
    return said.replace("Tuple should", "List should").partition(" after validation, not ")[0]


class AuthoredContract(Contract):
    """One that other people's code builds, as the stages of a job type: it refuses unknown fields.

    In JSON, which a newer release may have written, they are ignored as everywhere.
    """

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any, info: ValidationInfo) -> Any:
        if info.mode != "python" or not isinstance(given, dict):
            return given
        fields, known = cast("dict[str, Any]", given), cls.__pydantic_fields__
        if not fields.keys() <= known.keys():
            unknown = ", ".join(repr(name) for name in fields if name not in known)
            raise TypeError(f"{cls.__name__} has no field {unknown}; there are: {', '.join(known)}")
        return fields


class WireContract(Contract):
    """A message from or for an external system; its fields are camelCase there."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True
    )


def unknown_fields(message: BaseModel) -> dict[str, Any]:
    """Return the fields of a message that its contract has no place for, by their names.

    Args:
        message: Validated with `extra="allow"`. Unknown fields of a contract inside it stand below
            the name of its field.
    """
    fields = dict(message.model_extra or {})
    for name, field in type(message).model_fields.items():
        value = getattr(message, name)
        if isinstance(value, BaseModel) and (inside := unknown_fields(value)):
            fields[field.alias or name] = inside
    return fields


def names_of_fields(fields: Mapping[str, Any]) -> Iterator[str]:
    """Name the fields that hold something, as a 0 does; those of an object as `payload.color`."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            inside = names_of_fields(cast("Mapping[str, Any]", value))
            yield from (f"{name}.{inner}" for inner in inside)
        elif value or type(value) in (int, float):
            yield name


def _check_blob_name(name: str) -> str:
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError("must not hold empty, '.' or '..' segments")
    if any(character < " " or character in "\\\x7f" for character in name):
        raise ValueError("must not hold backslashes or control characters")
    return name


BlobName = Annotated[
    str, StringConstraints(min_length=1, max_length=1024), AfterValidator(_check_blob_name)
]
"""Name of a blob within the container, segments joined by '/'; safe as a relative path."""


OWN_PLACES: Final = (
    *("accepted/", "batches/", "jobs/", "kept/", "quarantine/"),
    *("receipts/", "reports/", "spreadsheets/", "staging/"),
)
"""What the names of blobs begin with that docflow keeps for itself among the documents."""


class BlobRef(Contract):
    """Points to one version of a blob; history carries this and never the bytes."""

    name: BlobName
    size: int
    """Bytes."""
    sha256: str | None = Field(default=None, max_length=64)
    """Lower-case hex; known once the bytes have passed through docflow."""
    etag: str | None = Field(default=None, max_length=256)


MEMO: Final = "digest"
"""Entry of a run's memo: the digest of the message that has the run's key."""


Digest = Annotated[str, Field(max_length=64)]
"""See `digest_of`."""


class Origin(Contract):
    """What is known of the message that started a run, beside its content."""

    queue: str
    message_id: str | None = None
    """As its sender, or the queue, set it."""
    digest: Digest
    """Kept in rows longer than Temporal keeps the run."""


def digest_of(message: Contract) -> str:
    """The same for two bodies that mean the same.

    Neither the order of fields nor white space counts, nor whether a default is spelled out; a
    field that a later release adds with a default leaves the digest as it is.
    """
    content = message.model_dump(mode="json", exclude_defaults=True)
    # Older releases dropped fields that they did not know.
    content.pop("unknown_fields", None)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def body_of(message: Contract) -> bytes:
    """A body that means a message: what is recorded of one that is refused after its start."""
    return message.model_dump_json(by_alias=True).encode()


class Problem(Contract):
    """One thing that is wrong with one row."""

    line: int | None = None
    """Row number as the user's program shows it, from 1; None: the whole document."""
    sheet: str | None = Field(default=None, max_length=64)
    """Sheet of the row, where rows of several sheets were read."""
    column: str | None = Field(default=None, max_length=200)
    """Header as it stands in the document, or the field's name."""
    value: str | None = Field(default=None, max_length=200)
    reason: str = Field(max_length=500)
    mark: str | None = Field(default=None, max_length=16)
    """Recognises the row when it comes back unchanged in a corrected report."""


Person = Annotated[str, StringConstraints(max_length=200)]
"""Who decides: the subject of a token, or a name that an operator typed."""


class Retry(Contract):
    """Try again from the failed step."""

    by: Person | None = None
    reason: str | None = Field(default=None, max_length=500)


class Answer(Contract):
    """Answer to a parked run (`retry`, `skip`, `fail`), or the request to stop (`cancel`)."""

    reason: str | None = Field(default=None, max_length=500)
    by: Person | None = None


class OperatorAnswer(Contract):
    """The same where every decision has an author: without a name it is the operator's."""

    by: Person = "operator"
    reason: str | None = Field(default=None, max_length=500)


AnyAnswer = Retry | Answer | OperatorAnswer
