"""Everything that is wrong with a file of job settings, before it is deployed.

Jobs whose files come back to them by the folder of a watch.

Protection against loops follows the events that jobs send: a file that a watch finds begins a chain
of its own. So what can be known of such a circle is found in the settings: jobs are the nodes of a
graph, whose edges are files that a watch may see, and events that one job sends to another.
"""

import re
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast

from pydantic import ValidationError

from workflows.shared.errors import RuleViolation
from workflows.transfers.events import FileNotice, RouteKey
from workflows.transfers.job_settings import (
    Settings,
    contradictions,
    partners_of,
    problems_in,
    problems_of_order,
    read_json,
    read_settings,
    unused_keys,
)
from workflows.transfers.paths import has_wildcards, matcher, split
from workflows.transfers.routes import ANY, ATTRIBUTES, RouteTable, is_exact, overlap
from workflows.transfers.settings import (
    FireEvent,
    JobSettings,
    ReadFile,
    SettingsJob,
    TemplateContext,
    WriteFile,
    problems_of_names,
    problems_of_template,
    zone_of,
)
from workflows.transfers.watches import Watch

_PART: Final = re.compile(r"\{([^{}]*)\}")
_OTHER_WILDCARDS: Final = re.compile(r"[?\[]")

_Name = tuple[str, str]
"""Queue and job."""


@dataclass(frozen=True, slots=True)
class _Edge:
    """That a job may start another one, or itself."""

    job: SettingsJob
    to: SettingsJob
    how: str


def watch_loops(
    settings: Settings, watches: Mapping[str, Watch], rules: RouteTable | None = None
) -> Iterator[str]:
    """Jobs that put files where a watch finds them and gives them to a job that led to them.

    A folder that depends on the event is not known, and passed over.

    Args:
        settings: Of the jobs.
        watches: By name.
        rules: For watches and events without a queue of their own; None: those are passed over.
    """
    graph = _Graph(settings, watches, rules)
    seen: set[frozenset[_Name]] = set()
    for job in graph.jobs.values():
        for edge in graph.by_watches(job):
            way = graph.way(edge.to, job)
            if way is None:
                continue
            circle = [edge, *way]
            jobs = frozenset(_name(each.job) for each in circle)
            # Of one job every action is named; of several, one way round.
            if len(circle) == 1 or jobs not in seen:
                seen.add(jobs)
                yield _sentence(circle)


def _sentence(circle: Sequence[_Edge]) -> str:
    steps = "; ".join(each.how for each in circle)
    return (
        f"{steps}: files may go round for ever; use another folder, or a pattern that leaves them "
        "out"
    )


class _Graph:
    """Which job may start which."""

    def __init__(
        self, settings: Settings, watches: Mapping[str, Watch], rules: RouteTable | None
    ) -> None:
        self.jobs: Mapping[_Name, SettingsJob] = {
            _name(job): job for job in settings.jobs.jobs if job.enabled
        }
        self._tables, self._rules = settings.tables, rules
        self._watched: dict[tuple[str, str], list[tuple[Watch, SettingsJob]]] = defaultdict(list)
        """Partner and folder to the watches of that folder, with the jobs that they start."""
        for watch in watches.values():
            job = self._started(watch.queue, _key_of(watch))
            if job is not None:
                folder, _ = split(watch.path.removeprefix("/"))
                self._watched[watch.partner, folder].append((watch, job))

    def by_watches(self, job: SettingsJob) -> Iterator[_Edge]:
        """The jobs that watches may start for the files of a job."""
        for number, action in enumerate(job.actions.list, 1):
            if isinstance(action, WriteFile):
                targets = [action.path]
            elif isinstance(action, ReadFile):
                targets = [each for each in (action.move_to, action.on_failure_move_to) if each]
            else:
                continue
            for target in targets:
                folder, name = split(target.removeprefix("/"))
                for watch, to in self._watched[action.partner, folder]:
                    if _may_be_seen(name, split(watch.path)[1]):
                        yield _Edge(
                            job,
                            to,
                            f"{_shown(job)}, action {number} ({action.action}): {target!r} at "
                            f"{watch.partner} is in the folder of watch {watch.name}, which gives "
                            f"its files to {'this job' if to is job else _shown(to)}",
                        )

    def way(self, start: SettingsJob, end: SettingsJob) -> Sequence[_Edge] | None:
        """The shortest way from one job to another; None: there is none."""
        ways: dict[_Name, tuple[_Edge, ...]] = {_name(start): ()}
        waiting = deque([start])
        while waiting:
            job = waiting.popleft()
            if job is end:
                return ways[_name(job)]
            for edge in (*self.by_watches(job), *self._by_events(job)):
                if _name(edge.to) not in ways:
                    ways[_name(edge.to)] = (*ways[_name(job)], edge)
                    waiting.append(edge.to)
        return None

    def _by_events(self, job: SettingsJob) -> Iterator[_Edge]:
        """The jobs that the events of a job may start."""
        for number, action in enumerate(job.actions.list, 1):
            if isinstance(action, FireEvent):
                for to in self._taking(job, action):
                    how = f"{_shown(job)}, action {number} (FireEvent), starts {_shown(to)}"
                    yield _Edge(job, to, how)

    def _taking(self, job: SettingsJob, action: FireEvent) -> Iterator[SettingsJob]:
        patterns = {name: _pattern_of(getattr(action, name), job) for name in ATTRIBUTES}
        sent = RouteKey.model_construct(None, **patterns)
        if all(map(is_exact, patterns.values())):
            found = self._started(action.queue, sent)
            yield from () if found is None else (found,)
            return
        for to in self.jobs.values():
            if to.queue == action.queue and all(
                overlap(patterns[name], getattr(to, f"event_{name}")) for name in ATTRIBUTES
            ):
                yield to

    def _started(self, queue: str | None, key: RouteKey) -> SettingsJob | None:
        """The job that an event starts; None: none, or it is not known."""
        if queue is None and self._rules is not None:
            rule = self._rules.find(key)
            queue = None if rule is None else rule.queue
        table = None if queue is None else self._tables.get(queue)
        found = None if table is None else table.find(key)
        return None if found is None else self.jobs[found.queue, found.rule]


def _name(job: SettingsJob) -> _Name:
    return job.queue, job.job


def _shown(job: SettingsJob) -> str:
    return f"job {job.job} of queue {job.queue}"


def _key_of(watch: Watch) -> RouteKey:
    return RouteKey(
        account_id=watch.account_id, source=watch.source, type=watch.type, subject=watch.subject
    )


def _pattern_of(template: str, job: SettingsJob) -> str:
    """The texts that a template of a job may become, as a pattern."""
    known = {
        "accountId": job.event_account_id,
        "source": job.event_source,
        "type": job.event_type,
        "subject": job.event_subject,
        "queue": job.queue,
        "job": job.job,
    }
    return _PART.sub(lambda part: known.get(part[1], ANY), template)


def _may_be_seen(name: str, wanted: str) -> bool:
    """Whether a watch may see a file of this name, as far as the template tells."""
    if "{" not in name:
        return matcher(wanted).match(name) is not None
    if not has_wildcards(wanted) or _OTHER_WILDCARDS.search(wanted) is None:
        return overlap(_PART.sub(ANY, name), wanted)
    return True


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
    facts = TemplateContext(_event_for(job), zone, job.queue, job.job)
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
