"""`jobsettings.json`: how it is read, which job an event gets, and what is wrong with it."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from workflows.shared.contracts import BlobRef, built_when_used, problem_text
from workflows.shared.errors import RuleViolation
from workflows.transfers.events import ACCOUNT, FileNotice, RouteKey
from workflows.transfers.routes import RouteRule, RouteTable
from workflows.transfers.runs import TransferPlan, fired_to, first_of
from workflows.transfers.settings import (
    DAYS,
    Action,
    AfterSource,
    CallHttp,
    Checksum,
    Compress,
    Custom,
    Decrypt,
    Encrypt,
    Extract,
    FireEvent,
    JobSettings,
    ReadFile,
    Scan,
    SettingsJob,
    Side,
    Sign,
    TemplateContext,
    Verify,
    WriteFile,
    resolve,
    resolved_templates,
)

_NEEDS_NO_FILE: Final = (ReadFile, FireEvent, CallHttp)
_LEAVES_FILES: Final = (Scan, FireEvent, CallHttp, WriteFile)
"""The files after such an action are those before it."""
_SENDS: Final = (WriteFile, FireEvent, CallHttp)


def refuse_order(actions: Sequence[Action], *, has_files: bool = False) -> None:
    """Refuse actions that have no file to work on, contradict themselves, or lose files.

    Args:
        actions: Of a job.
        has_files: It begins with files that are there.

    Raises:
        RuleViolation: Which of them, and what to do.
    """
    if problem := next(problems_of_order(actions, has_files=has_files), None):
        raise RuleViolation(problem)


def problems_of_order(actions: Sequence[Action], *, has_files: bool = False) -> Iterator[str]:
    """Everything for which `refuse_order` refuses actions."""
    if not has_files and not isinstance(actions[0], _NEEDS_NO_FILE):
        yield f"{actions[0].action} comes first, and no ReadFile before it"
    for index, action in enumerate(actions):
        if isinstance(action, ReadFile):
            yield from _contradictions(index, action)
            yield from _losses(index, action, actions[index + 1 :])
        if isinstance(action, FireEvent) and ACCOUNT in action.data:
            yield (
                f"{_named(index, action)}: {ACCOUNT} of Data would be replaced by AccountId; "
                "set AccountId instead"
            )
        if isinstance(action, CallHttp) and (name := _replaced_header(action)) is not None:
            yield (
                f"{_named(index, action)}: the header {name} would be replaced by the idempotency "
                "key; name another IdempotencyHeader, or null"
            )
        if isinstance(action, Checksum) and action.write and action.expected is not None:
            yield (
                f"{_named(index, action)}: Write adds a checksum, and Expected compares with one; "
                "use two actions"
            )


def _contradictions(index: int, action: ReadFile) -> Iterator[str]:
    if (action.after is AfterSource.MOVE) != (action.move_to is not None):
        yield (
            f"{_named(index, action)}: `After: move` and `MoveTo` belong together, and only one "
            "of them is set"
        )
    if action.at_least > action.at_most:
        yield f"{_named(index, action)}: AtLeast is {action.at_least}, and AtMost {action.at_most}"


def _losses(index: int, action: ReadFile, behind: Sequence[Action]) -> Iterator[str]:
    """Files that are sent nowhere before others take their place, or they are deleted."""
    following = next((n for n, each in enumerate(behind) if isinstance(each, ReadFile)), None)
    own = behind[:following]
    if following is not None and not any(isinstance(each, _SENDS) for each in own):
        yield (
            f"{_named(index + following + 1, behind[following])} replaces the files of "
            f"{_named(index, action)}, which no action has sent before: send them first, read all "
            "with one pattern, or use two jobs"
        )
    if action.after is AfterSource.DELETE and not any(map(_takes_files, own)):
        yield (
            f"{_named(index, action)}: `After: delete` deletes files that no WriteFile and no "
            "CallHttp with `Body: file` has sent"
        )


def _replaced_header(action: CallHttp) -> str | None:
    """The header of its settings that has the name of the one with the idempotency key."""
    own = (action.idempotency_header or "").lower()
    return next((name for name in sorted(action.headers) if name.lower() == own), None)


def _takes_files(action: Action) -> bool:
    if isinstance(action, CallHttp):
        return action.body == "file"
    return isinstance(action, WriteFile)


def writes_at_end(actions: Sequence[Action]) -> tuple[Sequence[WriteFile], Sequence[WriteFile]]:
    """The actions that write the files as they are at the end, and those that wrote other ones.

    What is kept of a transfer are its files at the end: an earlier WriteFile sent what they were
    made of, or files of another ReadFile.
    """
    changes = [n for n, each in enumerate(actions) if not isinstance(each, _LEAVES_FILES)]
    end = changes[-1] + 1 if changes else 0
    writes = [(n, each) for n, each in enumerate(actions) if isinstance(each, WriteFile)]
    return [each for n, each in writes if n >= end], [each for n, each in writes if n < end]


def _named(index: int, action: Action) -> str:
    return f"action {index + 1} ({action.action})"


ACTIONS: Final[Mapping[str, type[BaseModel]]] = MappingProxyType(
    {
        each.__name__: each
        for each in (
            ReadFile,
            WriteFile,
            Encrypt,
            Decrypt,
            Sign,
            Verify,
            Compress,
            Extract,
            Scan,
            Checksum,
            FireEvent,
            CallHttp,
            Custom,
        )
    }
)
_ACTION: Final[TypeAdapter[Action]] = TypeAdapter(Action, config=built_when_used())
_PROBLEMS: Final = 10
_NEAREST: Final = 3
_DATE: Final = re.compile(rf"\{{(?:{'|'.join(DAYS)})[:}}]")
_JOB: Final = re.compile(r"jobs\[(\d+)\]", re.IGNORECASE)
PLAN_BYTES: Final = 256 * 1024
"""Of a plan as JSON, which stands in the history of its run."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A file of settings, read and checked."""

    jobs: JobSettings
    unused: Sequence[str]
    """Keys that nothing reads, each with its place."""
    tables: Mapping[str, RouteTable]
    """Queue to its jobs, as rules."""

    def unused_by(self, job: SettingsJob) -> Sequence[str]:
        """Those of one job, and of the file as a whole; those of other jobs are no matter of it."""
        own = next(n for n, each in enumerate(self.jobs.jobs) if _is_same(each, job))
        found = ((each, _JOB.match(each)) for each in self.unused)
        return [each for each, of in found if of is None or int(of[1]) == own]


def _is_same(one: SettingsJob, other: SettingsJob) -> bool:
    return (one.queue, one.job) == (other.queue, other.job)


def read_settings(text: str | bytes) -> Settings:
    """Read a file of settings.

    Raises:
        RuleViolation: It is not JSON, or breaks a rule; the message says where.
    """
    raw = read_json(text)
    try:
        settings = JobSettings.model_validate(raw)
    except ValidationError as error:
        raise RuleViolation(f"jobsettings.json: {_explained(error)}") from error
    tables = _tables(settings)
    if problem := next(contradictions(settings, tables), None):
        raise RuleViolation(problem)
    return Settings(settings, tuple(unused_keys(raw)), tables)


def read_json(text: str | bytes) -> Any:
    """The JSON of a file of settings.

    Raises:
        RuleViolation: It is none, or a key stands twice in an object.
    """
    try:
        raw = json.loads(text, object_pairs_hook=_without_repeats)
        json.dumps(raw, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise RuleViolation("jobsettings.json holds half of a surrogate pair") from error
    except (ValueError, RecursionError) as error:
        raise RuleViolation(f"jobsettings.json is not JSON: {error}") from error
    return raw


def _without_repeats(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RuleViolation(f"jobsettings.json: {twice[:100]!r} stands twice in one object")
    return found


def _explained(error: ValidationError) -> str:
    found = problems_in(error)
    more = len(found) - _PROBLEMS
    return "; ".join([*found[:_PROBLEMS], *([f"and {more} more"] if more > 0 else [])])


def problems_in(error: ValidationError) -> Sequence[str]:
    """What is wrong with fields, each with its place."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return [f"{'.'.join(map(str, each['loc']))}: {problem_text(each)}" for each in found]


def _tables(settings: JobSettings) -> Mapping[str, RouteTable]:
    rules: dict[str, dict[str, RouteRule]] = defaultdict(dict)
    for job in settings.jobs:
        rules[job.queue].setdefault(job.job, _rule(job))
    return {queue: RouteTable(found.values()) for queue, found in rules.items()}


def contradictions(
    settings: JobSettings, tables: Mapping[str, RouteTable] | None = None
) -> Iterator[str]:
    """Jobs of one name, and jobs that could take the same events, each with what to do."""
    counts = Counter((job.queue, job.job) for job in settings.jobs)
    for (queue, job), number in counts.items():
        if number > 1:
            yield f"queue {queue} has {number} jobs {job!r}; rename all but one"
    for queue, table in (tables or _tables(settings)).items():
        for one, other in table.all_ties():
            yield (
                f"the jobs {one.rule!r} and {other.rule!r} of queue {queue} take the same events; "
                "give one of them a higher Priority"
            )


def _rule(job: SettingsJob) -> RouteRule:
    return RouteRule(
        queue=job.queue,
        rule=job.job,
        account_id=job.event_account_id,
        source=job.event_source,
        type=job.event_type,
        subject=job.event_subject,
        priority=job.priority,
        enabled=job.enabled,
    )


def job_of(settings: Settings, queue: str, key: RouteKey) -> SettingsJob:
    """The job that an event gets.

    Raises:
        RuleViolation: None takes it; the message names the nearest.
    """
    table = settings.tables.get(queue)
    if table is None:
        raise RuleViolation(f"jobsettings.json has no job of queue {queue}")
    found = table.find(key)
    if found is not None:
        jobs = settings.jobs.jobs
        return next(each for each in jobs if (each.queue, each.job) == (queue, found.rule))
    nearest = "; ".join(
        f"{each.rule}: {each.reason}" for each in table.explain(key).others[:_NEAREST]
    )
    raise RuleViolation(f"no job of queue {queue} takes this event; {nearest}")


def plan_of(
    job: SettingsJob,
    event: FileNotice,
    settings: BlobRef | None,
    unused: Sequence[str] = (),
    *,
    has_files: bool = False,
    remarks: Sequence[str] = (),
) -> TransferPlan:
    """What a run will do, with every name resolved.

    Args:
        job: Its settings.
        event: What it is for.
        settings: The version of the file that they are from.
        unused: Keys of the file that nothing reads.
        has_files: It begins with files that are there.
        remarks: What else people should know of it.

    Raises:
        RuleViolation: A name cannot be resolved, or the order of actions makes no sense.
    """
    actions = job.actions.list
    refuse_order(actions, has_files=has_files)
    facts = TemplateContext(event, job.zone, job.queue, job.job)
    found = [*remarks, *(f"nothing reads the key {each}" for each in unused)]
    if not event.time_given and _has_dates(job):
        found.append("the event has no time: names with dates use that of its arrival")
    sequence = None if job.sequence_key is None else resolve(job.sequence_key, facts)
    plan = TransferPlan(
        job=job,
        settings=settings,
        names=tuple(resolved_templates(action, facts) for action in actions),
        sequence=sequence,
        remarks=first_of(found),
        inline_receipt=True,
    )
    return _bounded(plan)


def _has_dates(job: SettingsJob) -> bool:
    """Whether a name of it depends on the time of the event."""
    return _DATE.search(job.model_dump_json()) is not None


def _bounded(plan: TransferPlan) -> TransferPlan:
    size = len(plan.model_dump_json().encode())
    if size > PLAN_BYTES:
        raise RuleViolation(
            f"job {plan.job.job} has {size:,} bytes with its names resolved; {PLAN_BYTES:,} are "
            "accepted: divide it"
        )
    return plan


def corrected(
    plan: TransferPlan, event: FileNotice, index: int, given: Mapping[str, Any]
) -> TransferPlan:
    """A plan with other settings of one action.

    Args:
        plan: As it is.
        event: What it is for.
        index: Of the action.
        given: Settings of it that change, as they stand in the file; all others stay.

    Raises:
        RuleViolation: They are not settings of this action.
    """
    actions = list(plan.job.actions.list)
    was, model = actions[index].action, type(actions[index])
    if unused := list(_unused(model, given, "")):
        raise RuleViolation(f"action {index + 1} ({was}) has no {' and '.join(unused)}")
    names = {name: field.alias or name for name, field in model.model_fields.items()}
    changes = {names.get(key, key): value for key, value in given.items()}
    try:
        action = _ACTION.validate_python(
            {**actions[index].model_dump(mode="json", by_alias=True), **changes}
        )
    except ValidationError as error:
        raise RuleViolation(f"action {index + 1} ({was}): {_explained(error)}") from error
    if action.action != was:
        raise RuleViolation(f"action {index + 1} is {was}, and stays one: not {action.action}")
    actions[index] = action
    refuse_order(actions, has_files=True)
    changed = plan.job.actions.model_copy(update={"list": tuple(actions)})
    job = plan.job.model_copy(update={"actions": changed})
    resolved = list(plan.names)
    resolved[index] = resolved_templates(
        action, TemplateContext(event, job.zone, job.queue, job.job)
    )
    return _bounded(plan.model_copy(update={"job": job, "names": tuple(resolved)}))


def refuse_other_past(plan: TransferPlan, before: TransferPlan, index: int) -> None:
    """Refuse a plan whose actions before one are others than those that were done.

    Raises:
        RuleViolation: Which of them.
    """
    done = before.job.actions.list[:index]
    for place, was in enumerate(done):
        now = plan.job.actions.list[place : place + 1]
        if now != (was,):
            raise RuleViolation(
                f"action {place + 1} ({was.action}) is done, and another one in the settings by "
                "now: `fail` this transfer, and send its event again under another id"
            )
    if len(plan.job.actions.list) <= index:
        raise RuleViolation("the settings have fewer actions by now than were done")


def partners_of(actions: Sequence[Action]) -> Sequence[str]:
    """The partners that actions name, each once."""
    named = (getattr(action, "partner", None) for action in actions)
    return tuple(dict.fromkeys(name for name in named if name is not None))


def verb_of(action: Action) -> str:
    """The activity that carries out an action: `transfers.read_file` of `ReadFile`."""
    words = "".join(f"_{each.lower()}" if each.isupper() else each for each in action.action)
    return f"transfers.{words.removeprefix('_')}"


def side_of(action: Action) -> Side:
    """Whose failures an action's are."""
    match action:
        case ReadFile():
            return Side.SOURCE
        case WriteFile() | FireEvent() | CallHttp():
            return Side.DESTINATION
        case _:
            return Side.OWN


LEFT_OUT: Final = frozenset({"WriteFile", "FireEvent", "CallHttp", "Compress", "Sign"})
"""Actions that a person may skip: nothing after them relies on them, and none is a protection."""


def may_be_left_out(action: Action) -> bool:
    """Whether a person may skip it."""
    return action.action in LEFT_OUT


def unused_keys(raw: Any) -> Iterator[str]:
    """Keys of a file of settings that nothing reads, each with its place."""
    return _unused(JobSettings, raw, "")


def _unused(model: type[BaseModel], raw: Any, place: str) -> Iterator[str]:
    """Keys that a model does not read."""
    if not isinstance(raw, dict):
        return
    found = cast(Mapping[str, Any], raw)
    known = {
        name: (field.alias or field_name, field)
        for field_name, field in model.model_fields.items()
        for name in (field_name, field.alias or field_name)
    }
    for key, value in found.items():
        where = f"{place}{key}"
        alias, field = known.get(key, (key, None))
        # Of two spellings of one key, the one of the documentation counts.
        if field is None or (key != alias and alias in found):
            yield where[:200]
            continue
        yield from _unused_within(field.annotation, value, where)


def _unused_within(annotation: Any, value: Any, where: str) -> Iterator[str]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from _unused(annotation, value, f"{where}.")
        return
    if not isinstance(value, list):
        return
    for number, each in enumerate(cast(Sequence[Any], value)):
        if isinstance(each, dict):
            model = _model_of(cast(Mapping[str, Any], each))
            yield from _unused(model, each, f"{where}[{number}].")


def _model_of(item: Mapping[str, Any]) -> type[BaseModel]:
    """Of an item of a list: actions say what they are, all others are jobs."""
    return ACTIONS.get(str(item.get("Action", item.get("action", ""))), SettingsJob)


def schema() -> dict[str, Any]:
    """The JSON Schema of the file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **JobSettings.model_json_schema(by_alias=True),
    }


PLACE: Final = 100
"""Characters of a place."""


def partner_of(action: Action) -> str | None:
    """The partner that an action needs; None: it needs none."""
    match action:
        case FireEvent() | Compress() | Extract() | Scan() | Checksum() | Custom():
            return None
        case _:
            return action.partner


def place_of(action: Action, names: Mapping[str, str]) -> str | None:
    """Path at the partner, queue or format of an action, without anything secret.

    Args:
        action: The action.
        names: Its templates, resolved.

    Returns:
        None: there is nothing to say of it.
    """
    match action:
        case ReadFile() | WriteFile():
            said = names.get("path", action.path)
        case CallHttp():
            # What follows the path of an address may be a signature or a token.
            said = f"{action.method} {names.get('path', action.path).partition('?')[0]}"
        case FireEvent():
            said = fired_to(action.queue)
        case Compress() | Extract():
            said = str(action.format or "")
        case Custom():
            said = action.name
        case _:
            return None
    return (said if len(said) <= PLACE else f"{said[: PLACE - 3]}...") or None
