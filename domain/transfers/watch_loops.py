"""Jobs that write into a folder whose watch starts them again.

Protection against loops follows the events that jobs send: a file that a watch finds begins a chain
of its own. So what can be known of such a circle is found in the settings.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from contracts.transfers import ReadFile, RouteKey, SettingsJob, WriteFile
from contracts.transfers.watches import Watch
from domain.transfers.job_settings import Settings
from domain.transfers.paths import has_wildcards, matcher, split
from domain.transfers.patterns import overlap
from domain.transfers.routing import RouteTable

_PART: Final = re.compile(r"\{[^{}]*\}")
_OTHER_WILDCARDS: Final = re.compile(r"[?\[]")


def watch_loops(
    settings: Settings, watches: Mapping[str, Watch], rules: RouteTable | None = None
) -> Iterator[str]:
    """Jobs that put files where a watch finds them and gives them to the same job.

    A folder that depends on the event is not known, and passed over.

    Args:
        settings: Of the jobs.
        watches: By name.
        rules: For watches without a queue of their own; None: those are passed over.
    """
    for watch in watches.values():
        job = _job_of(settings, watch, rules)
        if job is None:
            continue
        for number, action in enumerate(job.actions.list, 1):
            if isinstance(action, WriteFile):
                targets = [action.path]
            elif isinstance(action, ReadFile):
                targets = [each for each in (action.move_to, action.on_failure_move_to) if each]
            else:
                continue
            for target in targets:
                if action.partner == watch.partner and _may_be_seen(target, watch.path):
                    yield (
                        f"job {job.job} of queue {job.queue}, action {number} "
                        f"({action.action}): {target!r} at {watch.partner} is in the folder of "
                        f"watch {watch.name}, which gives its files to this job: they may go round "
                        "for ever; use another folder, or a pattern that leaves them out"
                    )


def _job_of(settings: Settings, watch: Watch, rules: RouteTable | None) -> SettingsJob | None:
    key = RouteKey(
        account_id=watch.account_id, source=watch.source, type=watch.type, subject=watch.subject
    )
    queue = watch.queue
    if queue is None and rules is not None:
        rule = rules.find(key)
        queue = None if rule is None else rule.queue
    table = None if queue is None else settings.tables.get(queue)
    found = None if table is None else table.find(key)
    if found is None:
        return None
    jobs = settings.jobs.jobs
    return next(each for each in jobs if (each.queue, each.job) == (queue, found.rule))


def _may_be_seen(target: str, pattern: str) -> bool:
    """Whether a watch may see a file of this name, as far as the template tells."""
    folder, name = split(target.removeprefix("/"))
    watched, wanted = split(pattern.removeprefix("/"))
    if folder != watched:
        return False
    if "{" not in name:
        return matcher(wanted).match(name) is not None
    if not has_wildcards(wanted) or _OTHER_WILDCARDS.search(wanted) is None:
        return overlap(_PART.sub("*", name), wanted)
    return True
