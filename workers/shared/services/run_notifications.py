"""What a notice holds beyond what its run says of itself: title, page and commands."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from workers import catalogue
from workers.shared.errors import SettingsError
from workers.shared.register import Run, recognise
from workers.shared.services import known_runs
from workers.shared.services.runs import page_in_temporal
from workers.shared.settings.check import check_settings
from workers.shared.settings.common import DEFAULT_POLICY, AddressSettings, NotificationSettings
from workflows.shared.dependencies import OUTAGE_PREFIX, OUTAGES
from workflows.shared.notifications import (
    NextStep,
    Notification,
    NotificationInput,
    NotificationKind,
    NotificationPolicies,
    cause_key,
    clean,
)
from workflows.shared.parking import MEANINGS

_MEANINGS: Final = {**MEANINGS, "cancel": "stop it"}
_OF_PARKED: Final = (NotificationKind.PARKED, NotificationKind.REMINDER)
_REASON: Final = ' --reason "..."'


def pipeline_of(workflow_id: str) -> str:
    """The pipeline whose policy counts for a run."""
    run = recognise(catalogue.PIPELINES, workflow_id)
    return OUTAGES if run is None else run.pipeline.name


def read_addresses(environment: Mapping[str, str]) -> AddressSettings:
    """The addresses that notices link to, with a check of the names of their policies.

    Raises:
        SettingsError: An address is invalid, or a policy is of no pipeline.
    """
    check_settings(environment, AddressSettings)
    if not NotificationSettings.problems(environment):
        known = {DEFAULT_POLICY, OUTAGES, *(each.name for each in catalogue.PIPELINES)}
        unknown = sorted(set(NotificationSettings.read(environment).policy) - known)
        if unknown:
            raise SettingsError(
                f"DOCFLOW_NOTIFY_POLICY names {', '.join(map(repr, unknown))}; there are "
                f"{', '.join(sorted(known))}"
            )
    return AddressSettings.read(environment)


@dataclass(frozen=True)
class NotificationComposer:
    """Makes notices.

    Args:
        policies: Who is sent what.
        public_url: Address of the gateway for its users.
        temporal_ui: Temporal's Web UI.
        namespace: Of the runs.
    """

    policies: NotificationPolicies
    public_url: str | None
    temporal_ui: str | None
    namespace: str

    def compose(self, order: NotificationInput) -> Notification:
        """The notice that a run has ordered."""
        run = recognise(catalogue.PIPELINES, order.workflow_id)
        pipeline = pipeline_of(order.workflow_id)
        return Notification(
            id=order.id,
            kind=order.kind,
            pipeline=pipeline,
            workflow_id=order.workflow_id,
            run_id=order.run_id,
            at=order.at,
            title=clean(_title(run, order), 300),
            state=order.state,
            reason=clean(order.reason, 2_000),
            steps=tuple(_steps(run, order)),
            link=self._page(run, order),
            recipients=self.policies.recipients(pipeline, order.kind, order.notify),
            waiting_since=order.waiting_since,
            gives_up_at=order.gives_up_at,
            assignee=order.assignee,
            notify=order.notify,
            about=order.about,
        )

    def cause(self, order: NotificationInput) -> str | None:
        """What the notice of a parked run shares with those of others; None: nothing."""
        run = recognise(catalogue.PIPELINES, order.workflow_id)
        if run is None or not run.kind.parks_alike or order.kind not in _OF_PARKED:
            return None
        return cause_key(f"{run.kind.workflow} {order.kind}", order.reason)

    def _page(self, run: Run | None, order: NotificationInput) -> str | None:
        if self.public_url and run is not None and run.kind.page is not None:
            return f"{self.public_url}{run.kind.page(run.key)}"
        if order.link is not None:
            return order.link
        return page_in_temporal(self.temporal_ui, self.namespace, order.workflow_id, order.run_id)


def _title(run: Run | None, order: NotificationInput) -> str:
    if run is None:
        return order.workflow_id.replace(f"{OUTAGE_PREFIX}/", "Outage: ")
    named = run.kind.title(run.key)
    filename = order.about.get("filename")
    return named or f"{run.pipeline.title} {filename or known_runs.run_name(run)}"


def _steps(run: Run | None, order: NotificationInput) -> Iterator[NextStep]:
    """Commands that answer, or show more; those of the pipeline first."""
    yield from order.steps
    if run is None:
        yield NextStep(does="see what waits for it", command="docflow status")
        return
    name = shlex.quote(order.workflow_id)
    for verb in order.answers:
        contract = {**run.kind.answers, **run.kind.events}.get(verb)
        if contract is not None:
            reason = _REASON if "reason" in contract.model_fields else ""
            does = _MEANINGS.get(verb, verb)
            yield NextStep(does=does, command=f"docflow {verb} {name}{reason}")
    yield NextStep(does="see more of it", command=f"docflow show {name}")
