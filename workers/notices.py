"""What workers send people about the runs of all pipelines."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from temporalio.worker import (
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from activities.notices import NoticeSending
from contracts.notices import WANTED, NoticeKind
from domain.notices import NoticePolicies
from workers.resources.common import LOG, Resources
from workers.services.run_notices import NoticeComposer, pipeline_of
from workers.settings.common import AddressSettings


@dataclass(frozen=True)
class OpenNotices:
    """What every worker of a process is given."""

    activities: NoticeSending
    interceptor: "NoticeInterceptor"


class NoticeInterceptor(Interceptor):
    """Lets workflows ask whether a notice of the end of a run is wanted.

    Args:
        is_wanted: Of a kind, by the id of the run.
    """

    def __init__(self, is_wanted: Callable[[str, NoticeKind], bool]) -> None:
        self._is_wanted = is_wanted

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        """Add the question to what a workflow may call outside of its sandbox."""
        input.unsafe_extern_functions[WANTED] = self._is_wanted
        return None


def open_notices(common: Resources, addresses: AddressSettings, namespace: str) -> OpenNotices:
    """What sends the notices of a process, once for all of its workers."""
    policies, channels = common.policies, common.notices
    composer = NoticeComposer(policies, addresses.public_url, addresses.temporal_ui, namespace)
    return OpenNotices(
        NoticeSending(channels, policies, composer.compose, composer.cause),
        NoticeInterceptor(wanted_by(policies, channels)),
    )


def wanted_by(
    policies: NoticePolicies, channels: Mapping[str, Any]
) -> Callable[[str, NoticeKind], bool]:
    """Whether the policy of a run's pipeline wants a kind of notice, and there is a way for it."""

    def is_wanted(workflow_id: str, kind: NoticeKind) -> bool:
        return LOG not in channels and kind in policies.of(pipeline_of(workflow_id)).kinds

    return is_wanted
