"""Everything that is wrong with a file of job settings, before it is deployed."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast

from pydantic import ValidationError

from contracts.transfers import FileNotice, FireEvent, JobSettings, SettingsJob
from contracts.transfers.watches import Watch
from domain.errors import RuleViolation
from domain.transfers.action_order import problems_of_order
from domain.transfers.job_settings import (
    contradictions,
    partners_of,
    problems_in,
    read_json,
    read_settings,
    unused_keys,
)
from domain.transfers.templates import (
    Facts,
    problems_of_names,
    problems_of_template,
    zone_of,
)
from domain.transfers.watch_loops import watch_loops

_DATUM: Final = re.compile(r"\{data\.([^{}:]+)\}")
_VALUE: Final = "x"
"""Stands for every value of an event."""


@dataclass(frozen=True, slots=True)
class SettingsCheck:
    """What was found."""

    problems: Sequence[str] = ()
    """Why the file, or one of its jobs, would be refused; each with its place."""
    unused: Sequence[str] = ()
    """Keys that nothing reads, each with its place."""
    loops: Sequence[str] = ()
    """Jobs that a watch may start again for the files that they write."""
    jobs: int = 0
    partners: Sequence[str] = ()
    """That the jobs name: whether they exist is not asked."""


def check_settings(
    text: str | bytes,
    queues: Collection[str],
    watches: Mapping[str, Watch] | None = None,
    *,
    keeps_copies: bool,
) -> SettingsCheck:
    """Find everything that is wrong with a file, and not only what a run meets first.

    Args:
        text: Of the file.
        queues: That there are.
        watches: By name; those without a queue of their own are passed over.
        keeps_copies: Whether there is a key to encrypt copies with.
    """
    try:
        raw = read_json(text)
    except RuleViolation as error:
        return SettingsCheck((str(error),))
    unused = tuple(unused_keys(raw))
    problems: list[str] = []
    try:
        jobs = dict(enumerate(JobSettings.model_validate(raw).jobs))
    except ValidationError as error:
        problems += problems_in(error)
        jobs = dict(_jobs_without_problem(raw))
    problems += contradictions(JobSettings(jobs=tuple(jobs.values())))
    for number, job in jobs.items():
        place = f"Jobs.{number} ({job.job})"
        found = _problems_of(job, queues, keeps_copies=keeps_copies)
        problems += [f"{place}: {problem}" for problem in found]
    actions = [action for job in jobs.values() for action in job.actions.list]
    loops = () if problems else tuple(watch_loops(read_settings(text), watches or {}))
    return SettingsCheck(tuple(problems), unused, loops, len(jobs), partners_of(actions))


def _jobs_without_problem(raw: object) -> Iterator[tuple[int, SettingsJob]]:
    """Those jobs of a file with wrong fields whose own fields are right, with their numbers."""
    if not isinstance(raw, dict):
        return
    fields = cast(Mapping[str, object], raw)
    listed = fields.get("Jobs")
    if not isinstance(listed, list):
        return
    for number, each in enumerate(cast(Sequence[object], listed)):
        with suppress(ValidationError):
            yield number, SettingsJob.model_validate(each)


def _problems_of(job: SettingsJob, queues: Collection[str], *, keeps_copies: bool) -> Iterator[str]:
    if job.queue not in queues:
        yield f"there is no queue {job.queue}; there are {', '.join(sorted(queues))}"
    if job.keep_copy_days and not keeps_copies:
        yield "KeepCopyDays needs DOCFLOW_TRANSFERS_STAGING_KEY, which is not set"
    zone = job.zone
    try:
        zone_of(zone)
    except RuleViolation as error:
        yield str(error)
        # Any zone shows what is wrong with formats of dates.
        zone = "UTC"
    yield from problems_of_order(job.actions.list)
    facts = Facts(_event_for(job), zone, job.queue, job.job)
    for number, action in enumerate(job.actions.list, 1):
        if isinstance(action, FireEvent) and action.queue and action.queue not in queues:
            yield f"action {number} (FireEvent): there is no queue {action.queue}"
        for problem in problems_of_names(action, facts):
            yield f"action {number}: {problem}"
    for problem in problems_of_template(job.sequence_key or "", facts):
        yield f"SequenceKey: {problem}"


def _event_for(job: SettingsJob) -> FileNotice:
    """An event that has all data that the templates of a job ask for."""
    data: dict[str, Any] = {}
    for found in _DATUM.finditer(job.model_dump_json()):
        *folders, last = found[1].split(".")
        place: dict[str, Any] = data
        for name in folders:
            inner = place.setdefault(name, {})
            place = cast(dict[str, Any], inner if isinstance(inner, dict) else {})
        place.setdefault(last, _VALUE)
    return FileNotice(
        id=_VALUE,
        source=_VALUE,
        type=_VALUE,
        subject=_VALUE,
        account_id=_VALUE,
        time=datetime(2026, 3, 1, 10, tzinfo=UTC),
        data=data,
    )
