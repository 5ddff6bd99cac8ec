"""A queue message becomes a job, or is refused and recorded without its secret."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.common import TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

from activities.jobs.ports import JobAlias
from adapters.ports.errors import Unavailable
from tests.support.jobs.submission import Runs, SubmissionSetup
from tests.support.memory.rejected import MemoryRejectedMessages
from workers.jobs.intake import JobIntake, without_secrets
from workers.jobs.runs import StartedJob
from workers.shared.services.bodies import Abandon, DeadLetter, Settle, Verdict
from workers.shared.services.errors import TemporalRefused, TemporalUnavailable
from workflows.jobs.runs import JobInput, job_workflow_id

SECRET = "planted-secret-of-a-client"


@dataclass
class Aliases:
    """Foreign ids, in memory."""

    kept: dict[str, JobAlias] = field(default_factory=dict)

    async def get(self, alias: str) -> JobAlias | None:
        return self.kept.get(alias)

    async def claim(self, alias: JobAlias) -> JobAlias:
        return self.kept.setdefault(alias.alias, alias)

    async def move(self, alias: JobAlias) -> None:
        self.kept[alias.alias] = alias

    async def release(self, alias: JobAlias) -> None:
        assert self.kept.pop(alias.alias) == alias


class Temporal:
    """Knows the runs that were started."""

    namespace = "default"

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    def get_workflow_handle(self, workflow_id: str) -> "Temporal":
        self._known = any(job_workflow_id(e.job_id) == workflow_id for e in self._runs.orders)
        self._id = workflow_id
        return self

    async def describe(self) -> Any:
        if not self._known:
            raise RPCError("not found", RPCStatusCode.NOT_FOUND, b"")
        attributes = TypedSearchAttributes([])
        return SimpleNamespace(
            status=None,
            id=self._id,
            run_id="r",
            start_time=datetime.now(UTC),
            typed_search_attributes=attributes,
        )


@dataclass
class Setup(SubmissionSetup):
    """An intake, and what it stands on."""

    aliases: Aliases = field(default_factory=Aliases)
    rejected: MemoryRejectedMessages = field(default_factory=MemoryRejectedMessages)

    async def accept(self, body: bytes | str) -> Verdict:
        intake = JobIntake(
            self.service, self.aliases, self.rejected, cast(Any, Temporal(self.runs)), queue="jobs"
        )
        return await intake.accept(body.encode() if isinstance(body, str) else body, 0, "m1")


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path)


def body(job_id: str = "abc", stage: int = 1, **parameters: Any) -> str:
    return json.dumps(
        {
            "job_id": job_id,
            "job_type": "count_words",
            "stage": stage,
            "parameters": parameters,
            "stage_results": {},
            "timestamp": "2025-09-12T22:00:00Z",
        }
    )


def _nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


async def test_a_message_starts_a_job_whose_alias_is_the_foreign_id(setup: Setup) -> None:
    verdict = await setup.accept(body(size=3))
    (order,) = setup.runs.orders
    assert verdict == Settle(job_workflow_id(order.job_id))
    assert (order.alias, order.parameters) == ("abc", {"files": [], "size": 3})


async def test_the_same_message_again_is_settled_whatever_has_become_of_its_files(
    setup: Setup,
) -> None:
    await setup.put("a.txt")
    first = await setup.accept(body(files=["a.txt"]))
    assert isinstance(first, Settle)
    await setup.put("a.txt", "other bytes")
    assert await setup.accept(body(files=["a.txt"])) == Settle(first.workflow_id, duplicate=True)
    await setup.bronze.delete("a.txt")
    assert await setup.accept(body(files=["a.txt"])) == Settle(first.workflow_id, duplicate=True)
    assert len(setup.runs.orders) == 1


async def test_other_content_under_the_same_foreign_id_is_refused_and_recorded(
    setup: Setup,
) -> None:
    await setup.accept(body(size=3))
    verdict = await setup.accept(body(size=4))
    assert isinstance(verdict, DeadLetter)
    assert verdict.reason == "KeyReused" and "'abc' came before" in verdict.description
    assert [each.reason for each in await setup.rejected.list()] == ["KeyReused"]
    assert len(setup.runs.orders) == 1


async def test_a_start_that_failed_is_made_up_for_over_the_files_of_then(setup: Setup) -> None:
    class Down(Runs):
        async def start(self, order: JobInput, *, rerun: bool = False) -> StartedJob:
            raise TemporalUnavailable("Temporal does not answer")

    await setup.put("a.txt")
    up, setup.runs = setup.runs, Down()
    assert isinstance(await setup.accept(body(files=["a.txt"])), Abandon)
    setup.runs = up
    await setup.put("a.txt", "other bytes")
    verdict = await setup.accept(body(files=["a.txt"]))
    (order,) = up.orders
    assert verdict == Settle(job_workflow_id(order.job_id))
    assert setup.aliases.kept["abc"].job_id == order.job_id


async def test_a_message_that_temporal_never_takes_is_refused_and_may_come_again_corrected(
    setup: Setup,
) -> None:
    class Refusing(Runs):
        async def start(self, order: JobInput, *, rerun: bool = False) -> StartedJob:
            error = RPCError("Blob data size exceeds limit.", RPCStatusCode.INVALID_ARGUMENT, b"")
            raise TemporalRefused("Temporal does not take the request") from error

    taking, setup.runs = setup.runs, Refusing()
    verdict = await setup.accept(body(size=3))
    assert isinstance(verdict, DeadLetter) and verdict.reason == "InvalidMessage"
    assert "exceeds limit" in verdict.description
    assert len(await setup.rejected.list()) == 1
    setup.runs = taking
    assert isinstance(await setup.accept(body(size=4)), Settle)


@pytest.mark.parametrize(
    ("raw", "reason", "description"),
    [
        (body(stage=2), "StageNotSupported", "stage 2: docflow starts jobs at stage 1"),
        (body(stage=0), "StageNotSupported", "stage 0"),
        (
            body().replace('"stage_results": {}', '"stage_results": {"1": {"n": 3}}'),
            "StageNotSupported",
            "stage_results",
        ),
        (body(files=[_nested(65)]), "InvalidMessage", "parameters.files: is nested more than 64"),
        (body(size=0), "InvalidMessage", "parameters.size"),
        (body(files=["gone.txt"]), "InvalidMessage", "there is no file 'gone.txt'"),
        ('{"job_type": "count_words"}', "InvalidMessage", "job_id"),
        ('{"job_id": "a", "job_type": "b", "parameters": {}}', "InvalidMessage", "'b' is not"),
        (
            '{"job_id": "a", "job_type": "b", "parameters": {}, "prioritty": 1}',
            "InvalidMessage",
            "prioritty: not known",
        ),
        ("[]", "MalformedBody", "not a JSON object"),
        ("{", "MalformedBody", "not JSON"),
        (b"\xff", "MalformedBody", "not UTF-8"),
    ],
)
async def test_a_message_that_cannot_be_a_job_is_dead_lettered(
    setup: Setup, raw: str | bytes, reason: str, description: str
) -> None:
    verdict = await setup.accept(raw)
    assert isinstance(verdict, DeadLetter)
    assert verdict.reason == reason and description in verdict.description
    assert [each.reason for each in await setup.rejected.list()] == [reason]
    assert not setup.runs.orders


async def test_names_that_no_text_can_hold_are_refused_in_words_that_can_be_sent(
    setup: Setup,
) -> None:
    half = "\\ud800"
    for body in (
        f'{{"job_id": "a", "job_type": "count_words", "parameters": {{"{half}": 1}}}}',
        f'{{"job_id": "a", "job_type": "count_words", "parameters": {{}}, "{half}": 1}}',
    ):
        verdict = await setup.accept(body)
        assert isinstance(verdict, DeadLetter)
        assert "surrogate" in verdict.description or "known" in verdict.description
        assert verdict.description.encode()


async def test_an_outage_gives_the_message_back(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(name: str) -> Any:
        raise Unavailable("the blob store does not answer")

    monkeypatch.setattr(setup.bronze, "stat", down)
    assert await setup.accept(body(files=["a.txt"])) == Abandon("the blob store does not answer")
    assert not await setup.rejected.list()


@pytest.mark.parametrize(
    "raw",
    [
        body(stage=2, webhook_url="https://a.org", webhook_secret=SECRET),
        body(size=0, webhook_url="https://a.org", webhook_secret=SECRET),
        body(webhook_secret=SECRET),
        # Readers disagree about it, so it is not read as JSON.
        body(webhook_url="https://a.org", webhook_secret=SECRET)[:-1] + ', "stage": 1}',
        body(webhook_url="https://a.org", webhook_secret=SECRET)[:-3],
    ],
)
async def test_the_secret_of_a_refused_message_is_not_recorded(
    setup: Setup, raw: str, caplog: pytest.LogCaptureFixture
) -> None:
    verdict = await setup.accept(raw)
    assert isinstance(verdict, DeadLetter)
    (kept,) = await setup.rejected.list()
    assert "***" in kept.body
    for text in (kept.body, kept.description, verdict.description, caplog.text, repr(verdict)):
        assert SECRET not in text


async def test_a_masked_secret_is_not_taken_for_one(setup: Setup) -> None:
    verdict = await setup.accept(body(webhook_url="https://a.org", webhook_secret="***"))
    assert isinstance(verdict, DeadLetter) and "write it in again" in verdict.description


async def test_another_secret_under_the_same_foreign_id_is_refused(setup: Setup) -> None:
    given = {"webhook_url": "https://a.org"}
    assert isinstance(await setup.accept(body(**given, webhook_secret=SECRET)), Settle)
    again = await setup.accept(body(**given, webhook_secret=SECRET))
    assert isinstance(again, Settle) and again.duplicate
    verdict = await setup.accept(body(**given, webhook_secret="rotated"))
    assert isinstance(verdict, DeadLetter) and verdict.reason == "KeyReused"
    assert "'abc' came before with another webhook_secret" in verdict.description
    assert [each.reason for each in await setup.rejected.list()] == ["KeyReused"]
    assert SECRET not in str(setup.aliases.kept) and len(setup.runs.orders) == 1


async def test_a_receiver_that_would_never_be_notified_is_refused(setup: Setup) -> None:
    """The job was asked for before, under another foreign id and without it."""
    assert isinstance(await setup.accept(body("first")), Settle)
    same = await setup.accept(body("second"))
    assert isinstance(same, Settle) and same.duplicate
    given = {"webhook_url": "https://a.org", "webhook_secret": SECRET}
    verdict = await setup.accept(body("third", **given))
    assert isinstance(verdict, DeadLetter) and verdict.reason == "JobNotStarted"
    assert "webhook_url is not used" in verdict.description and not setup.secrets.kept
    assert setup.aliases.kept.keys() == {"first", "second"}


async def test_a_message_that_would_not_do_a_failed_job_again_is_refused(setup: Setup) -> None:
    await setup.accept(body("first"))
    setup.runs.note = "this job was done before and is failed: restart continues it"
    verdict = await setup.accept(body("second"))
    assert isinstance(verdict, DeadLetter) and verdict.reason == "JobNotStarted"
    assert "is failed: restart" in verdict.description
    # The message that started it, delivered again when Temporal had forgotten its run.
    setup.aliases.kept.clear()
    assert isinstance(await setup.accept(body("first")), Settle)


def test_a_body_without_a_secret_is_recorded_as_it_is() -> None:
    assert json.loads(without_secrets(body(size=3).encode())) == json.loads(body(size=3))
    assert without_secrets(b"not json") == b"not json"
