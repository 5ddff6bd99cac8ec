"""What a client asks of the STAC API, by address or by body, as a search of the catalogue."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import ConfigDict, Field, ValidationError, field_validator

from adapters.ports.catalogue import CatalogueQuery
from contracts.base import Contract, problem_text
from domain.errors import RuleViolation
from domain.jobs.stac.queries import filter_of_text
from workers.gateway.jobs.stac_fields import (
    FieldSelection,
    SortField,
    fields_of_text,
    sort_of_text,
    text_of_fields,
    text_of_sort,
)

Number = Annotated[float, Field(allow_inf_nan=False)]


class SearchBody(Contract):
    """Body of `POST /search`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    collections: list[str] | None = Field(default=None, max_length=1_000)
    ids: list[str] | None = Field(default=None, max_length=10_000)
    bbox: list[Number] | None = None
    intersects: dict[str, Any] | None = None
    datetime: str | None = Field(default=None, max_length=200)
    filter: dict[str, Any] | str | None = None
    filter_lang: Literal["cql2-json", "cql2-text"] | None = Field(None, alias="filter-lang")
    filter_crs: Literal["http://www.opengis.net/def/crs/OGC/1.3/CRS84"] | None = Field(
        None, alias="filter-crs"
    )
    fields: FieldSelection | None = None
    sortby: list[SortField] | None = Field(default=None, max_length=10)
    limit: int = Field(default=10, ge=1)
    token: str | None = Field(default=None, max_length=1_000)

    @field_validator("bbox")
    @classmethod
    def _has_sides(cls, value: list[float] | None) -> list[float] | None:
        if value is not None and len(value) not in (4, 6):
            raise ValueError("a bbox has four numbers, or six with heights")
        return value

    def query(self) -> CatalogueQuery:
        """As the catalogue is asked.

        Raises:
            RuleViolation: The filter is not what its language says.
        """
        return CatalogueQuery(
            collections=self.collections,
            ids=self.ids,
            bbox=_without_heights(self.bbox),
            intersects=self.intersects,
            datetime=self.datetime,
            filter=self._filter(),
            sort=[(each.field, each.direction == "desc") for each in self.sortby or ()],
            limit=self.limit,
            token=self.token,
        )

    def _filter(self) -> Mapping[str, Any] | None:
        if self.filter is None:
            return None
        if isinstance(self.filter, str):
            if self.filter_lang == "cql2-json":
                return _object(self.filter)
            return filter_of_text(self.filter)
        if self.filter_lang == "cql2-text":
            raise RuleViolation("filter: cql2-text is a text, and not an object")
        return self.filter


def body_of(content: bytes) -> SearchBody:
    """A search by body.

    Raises:
        RuleViolation: It is not JSON, or no search; the message names the field.
    """
    try:
        body = json.loads(content or b"{}", object_pairs_hook=_once)
        json.dumps(body, ensure_ascii=False).encode()
        return _validated(body)
    except UnicodeEncodeError as error:
        raise RuleViolation("the body holds half of a surrogate pair: no text has that") from error
    except ValueError as error:
        raise RuleViolation(f"the body is not JSON: {error}") from error
    except RecursionError as error:
        raise RuleViolation("the body is nested too deep") from error


def parameters_of(values: Mapping[str, str]) -> SearchBody:
    """A search by the parameters of an address: lists are separated by commas.

    Raises:
        RuleViolation: A parameter cannot be read, or is not known; the message names it.
    """
    given: dict[str, Any] = dict(values)
    for name in ("collections", "ids"):
        if name in given:
            given[name] = [part for part in given[name].split(",") if part]
    if "bbox" in given:
        given["bbox"] = given["bbox"].split(",")
    if "fields" in given:
        given["fields"] = fields_of_text(given["fields"])
    if "sortby" in given:
        given["sortby"] = sort_of_text(given["sortby"])
    if "intersects" in given:
        given["intersects"] = _object(given["intersects"])
    return _validated(given)


def addressed(body: SearchBody, token: str) -> Mapping[str, str]:
    """Parameters of the address of another page of a search."""
    known = body.model_dump(exclude_none=True, exclude_unset=True, by_alias=True)
    made = {name: _parameter(value) for name, value in known.items()}
    if body.fields is not None:
        made["fields"] = text_of_fields(known["fields"])
    if body.sortby is not None:
        made["sortby"] = text_of_sort(known["sortby"])
    return {**made, "token": token}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; of two values under one name each alone would be another search."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RuleViolation(f"{twice[:50]!r} is given more than once")
    return made


def _validated(value: object) -> SearchBody:
    try:
        return SearchBody.model_validate(value)
    except ValidationError as error:
        problems = (
            f"{'.'.join(map(str, each['loc'])) or 'the search'}: {problem_text(each)}"
            for each in error.errors()[:5]
        )
        raise RuleViolation("; ".join(problems)) from error


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RuleViolation(f"it is not JSON: {text[:100]!r}") from error
    if not isinstance(value, dict):
        raise RuleViolation(f"it is not a JSON object: {text[:100]!r}")
    return cast(dict[str, Any], value)


def _parameter(value: Any) -> str:
    if isinstance(value, dict):
        return json.dumps(value)
    if isinstance(value, list):
        return ",".join(str(part) for part in cast(list[Any], value))
    return str(value)


def _without_heights(box: Sequence[float] | None) -> tuple[float, float, float, float] | None:
    if box is None:
        return None
    west, south, east, north = box if len(box) == 4 else (box[0], box[1], box[3], box[4])
    return west, south, east, north
