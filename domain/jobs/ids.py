"""Ids of jobs: the same request over the same bytes is the same job."""

import hashlib
import json
from collections.abc import Sequence
from typing import cast

from contracts.jobs import InputIdentity, JsonObject, WorkflowDefinition
from domain.errors import RuleViolation


def job_id(
    definition: WorkflowDefinition, parameters: JsonObject, inputs: Sequence[InputIdentity]
) -> str:
    """SHA-256 over what a job is to do, in lower-case hex.

    Args:
        definition: Its type and version count.
        parameters: As validated, with defaults, and without those of webhooks.
        inputs: What they are now; their order is of no account.

    Raises:
        RuleViolation: A parameter holds what JSON or UTF-8 does not have.
    """
    content = {
        "job_type": definition.job_type,
        "version": definition.version,
        "parameters": parameters,
        "inputs": sorted(_identity(each) for each in inputs),
    }
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def canonical(content: object) -> str:
    """JSON in one way: keys sorted, no white space, 1.0 written as 1.

    Raises:
        RuleViolation: A number is NaN or infinite, or a text holds half a surrogate pair.
    """
    try:
        text = json.dumps(
            _plain(content),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
        )
        text.encode()
    except UnicodeEncodeError as error:
        raise RuleViolation(
            "a parameter holds half a surrogate pair, which is not a character"
        ) from error
    except ValueError as error:
        raise RuleViolation("a parameter is NaN or infinite, which JSON does not have") from error
    return text


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        fields = cast(dict[object, object], value)
        return {str(key): _plain(each) for key, each in fields.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in cast(Sequence[object], value)]
    return value


def _identity(each: InputIdentity) -> list[str]:
    """URI, size, and sha256 where it is known, else the etag."""
    if each.sha256 is not None:
        return [each.uri, str(each.size), f"sha256:{each.sha256}"]
    return [each.uri, str(each.size), f"etag:{each.etag}"]
