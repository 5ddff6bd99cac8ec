"""Jobs whose files come back to them by the folder of a watch.

Protection against loops follows the events that jobs send: a file that a watch finds begins a chain
of its own. So what can be known of such a circle is found in the settings: jobs are the nodes of a
graph, whose edges are files that a watch may see, and events that one job sends to another.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contracts.transfers import FireEvent, ReadFile, RouteKey, SettingsJob, WriteFile
from contracts.transfers.watches import Watch
from domain.transfers.job_settings import Settings
from domain.transfers.paths import has_wildcards, matcher, split
from domain.transfers.patterns import ANY, is_exact, overlap
from domain.transfers.routing import ATTRIBUTES, RouteTable

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
