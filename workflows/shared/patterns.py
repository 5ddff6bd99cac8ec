"""Patterns that people write for their own columns, on an engine that takes linear time."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from pydantic_core import SchemaError, SchemaValidator, core_schema

from workflows.shared.errors import RuleViolation

_REASON: Final = "error:"


@lru_cache(maxsize=1024)
def compiled_pattern(pattern: str) -> Callable[[str], bool]:
    """Return what says whether a whole text matches a pattern.

    Raises:
        RuleViolation: The engine does not take the pattern; it has neither look-around nor back
            references, and its patterns have a greatest size.
    """
    # Alone first: `a)|(b` is none, though it would be one in brackets.
    _compiled(pattern)
    return _compiled(f"^(?:{pattern})$").isinstance_python


def _compiled(pattern: str) -> SchemaValidator:
    schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True)
    try:
        return SchemaValidator(schema)
    except SchemaError as error:
        reason = str(error).rpartition(_REASON)[2].rpartition("SchemaError:")[2].strip()
        raise RuleViolation(f"is not a pattern that can be used: {reason}") from error
