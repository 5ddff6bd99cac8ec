"""What the workflow sees of a failure."""

import ast
import asyncio
import re
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio import activity
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DefaultFailureConverter, DefaultPayloadConverter
from temporalio.exceptions import ApplicationError

from activities.shared.failures import (
    MESSAGE_CHARACTERS,
    THROTTLING_ATTEMPTS,
    TRANSIENT_ATTEMPTS,
    UNAVAILABLE_ATTEMPTS,
    as_application_error,
    translate_failures,
)
from adapters.ports.errors import BlobNotFound, Throttled, Unavailable, UnreadableDocument
from adapters.ports.places import PartnerAway
from tests.support.imports.activities import environment
from workflows.shared import errors, policies
from workflows.shared.dependencies import Dependency, WaitInput
from workflows.shared.errors import (
    INVALID_DOCUMENT,
    MISSING_BLOB,
    PERMANENT,
    THROTTLING,
    TRANSIENT,
    UNAVAILABLE,
    UNREADABLE_DOCUMENT,
    InvalidDocument,
    RuleViolation,
)
from workflows.shared.failures import awaited_by


@pytest.mark.parametrize(
    ("error", "type_", "attempts"),
    [
        (Unavailable("down"), TRANSIENT, TRANSIENT_ATTEMPTS),
        (Unavailable("down", Dependency.DATABASE), UNAVAILABLE, UNAVAILABLE_ATTEMPTS),
        (KeyError("a fault of ours"), TRANSIENT, TRANSIENT_ATTEMPTS),
        (Throttled("slower"), THROTTLING, THROTTLING_ATTEMPTS),
        (BlobNotFound("gone"), MISSING_BLOB, 1),
        (UnreadableDocument("a picture"), UNREADABLE_DOCUMENT, 1),
        (InvalidDocument("no header"), INVALID_DOCUMENT, 1),
        (RuleViolation("not so"), PERMANENT, 1),
    ],
)
def test_each_class_has_its_number_of_attempts(error: Exception, type_: str, attempts: int) -> None:
    for attempt in range(1, attempts + 3):
        failure = as_application_error(error, attempt)
        assert failure.type == type_
        assert failure.non_retryable == (attempt >= attempts)


def test_a_server_says_when_to_come_back() -> None:
    failure = as_application_error(Throttled("slower", retry_after=7.5), 1)
    assert failure.next_retry_delay == timedelta(seconds=7.5)
    assert as_application_error(Throttled("slower"), 1).next_retry_delay is None


def test_the_run_learns_what_is_unavailable_after_one_quick_attempt_more() -> None:
    error = Unavailable("full", Dependency.SCRATCH_DISK, room=7)
    first, second = (as_application_error(error, attempt) for attempt in (1, 2))
    # A longer pause of a local step would be a timer in the history.
    assert first.next_retry_delay is not None
    assert first.next_retry_delay <= policies.SHORT["local_retry_threshold"]
    assert second.non_retryable
    assert tuple(second.details) == ("scratch-disk", 7)
    assert awaited_by(second) == WaitInput(dependency=Dependency.SCRATCH_DISK, room=7)


def test_other_failures_are_no_outages() -> None:
    for error in (Unavailable("busy"), Throttled("slower"), RuleViolation("no")):
        assert awaited_by(as_application_error(error, 9)) is None


def test_only_the_first_line_of_an_unexpected_error_is_reported() -> None:
    failure = as_application_error(ValueError("no such column\n[SQL: SELECT secret]"), 1)
    assert failure.message == "unexpected ValueError: no such column"


def test_messages_are_bounded_and_name_a_fault_of_ours() -> None:
    failure = as_application_error(ValueError("x" * 10_000), 1)
    assert failure.message.startswith("unexpected ValueError: xxx")
    assert len(failure.message) == MESSAGE_CHARACTERS
    assert as_application_error(Unavailable(), 1).message == "Unavailable"


class Steps:
    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error

    @activity.defn(name="steps.double")
    @translate_failures
    async def double(self, number: int) -> int:
        """Twice the number."""
        if self.error is not None:
            raise self.error
        return 2 * number


async def test_results_pass_and_the_signature_stays() -> None:
    assert await environment().run(Steps().double, 21) == 42
    definition = activity._Definition.must_from_callable(Steps().double)
    assert definition.name == "steps.double"
    assert (definition.arg_types, definition.ret_type) == ([int], int)


async def test_the_cause_keeps_its_traceback() -> None:
    original = Unavailable("down")
    with pytest.raises(ApplicationError) as caught:
        await environment(attempt=TRANSIENT_ATTEMPTS).run(Steps(original).double, 1)
    assert caught.value.non_retryable
    assert caught.value.__cause__ is original
    assert original.__traceback__ is not None


@pytest.mark.parametrize(
    "error", [ApplicationError("mine", type="Own"), asyncio.CancelledError("stop")]
)
async def test_what_is_temporals_already_passes_through(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        await environment().run(Steps(error).double, 1)
    assert caught.value is error


def test_a_blob_store_that_keeps_throttling_is_waited_for() -> None:
    busy = Throttled("busy", 1.0, Dependency.BLOB_STORE)
    assert as_application_error(busy, THROTTLING_ATTEMPTS - 1).type == THROTTLING
    last = as_application_error(busy, THROTTLING_ATTEMPTS)
    assert (last.type, last.non_retryable, list(last.details)) == (
        UNAVAILABLE,
        True,
        [Dependency.BLOB_STORE, 0],
    )


def test_an_account_that_throttles_is_asked_again_without_end() -> None:
    busy = Throttled("busy", 7.0, Dependency.CLOUD)
    late = as_application_error(busy, 10_000)
    assert (late.type, late.non_retryable) == (THROTTLING, False)
    assert late.next_retry_delay == timedelta(seconds=7)


def test_a_partner_that_is_unavailable_is_an_outage_with_a_name() -> None:
    error = as_application_error(PartnerAway("acme", "no route to host"), UNAVAILABLE_ATTEMPTS)
    assert (error.type, error.non_retryable) == (UNAVAILABLE, True)
    assert error.details == ("partner", 0, "acme")
    awaited = awaited_by(error)
    assert awaited == WaitInput(dependency=Dependency.PARTNER, name="acme")


async def test_a_text_that_cannot_be_encoded_reaches_the_workflow_without_it() -> None:
    @translate_failures
    async def fails() -> None:
        try:
            raise OSError("\udcff")
        except OSError as error:
            raise RuleViolation("scene_\udcff.tif is empty") from error

    with pytest.raises(ApplicationError) as caught:
        await environment().run(fails)
    assert (caught.value.message, caught.value.type) == ("scene_?.tif is empty", PERMANENT)
    sent = Failure()
    DefaultFailureConverter().to_failure(caught.value, DefaultPayloadConverter(), sent)
    assert sent.application_failure_info.non_retryable


async def test_an_exit_is_a_failure_and_a_cancellation_is_none() -> None:
    @translate_failures
    async def fails(error: BaseException) -> None:
        raise error

    with pytest.raises(ApplicationError, match="unexpected SystemExit: 3"):
        await environment().run(fails, SystemExit(3))
    with pytest.raises(asyncio.CancelledError):
        await environment().run(fails, asyncio.CancelledError())


def test_types_of_failures_are_constants_of_one_module() -> None:
    """Histories and callers match them: a literal that is spelt otherwise matches nothing."""
    root = Path(__file__).parents[2]
    literal = [
        f"{path.relative_to(root)}:{call.lineno}"
        for layer in ("adapters", "activities", "workflows", "workers")
        for path in (root / layer).rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("ApplicationError")
        for given in call.keywords
        if given.arg == "type" and isinstance(given.value, ast.Constant)
    ]
    assert literal == []
    names = [value for name, value in vars(errors).items() if name.isupper()]
    assert len(names) == len(set(names))
    assert set(names) <= set(re.findall(r"\w+", errors.__doc__ or ""))
