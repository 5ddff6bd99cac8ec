"""The chart of Kubernetes, rendered: what a release consists of, and values for tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import helm_python
import yaml

from tests.chart import CHART, FILE, SAMPLE, kinds
from workers.shared.settings.check import declared_groups

FOLDER = FILE.parents[1]
DIGEST = f"sha256:{'5eed' * 16}"
DECLARED = {each.name: each for group in declared_groups() for each in group.declared()}


@dataclass(frozen=True)
class Rendered:
    """What a release of the chart consists of."""

    objects: Sequence[Mapping[str, Any]]

    def of(self, kind: str) -> Mapping[str, Any]:
        """All objects of a kind of Kubernetes, by the name of the process that each is for."""
        return {
            each["metadata"]["name"].removeprefix("docflow-"): each
            for each in self.objects
            if each["kind"] == kind
        }

    @cached_property
    def pods(self) -> Mapping[str, Any]:
        """The pods of Deployments and Jobs, by the kind of process."""
        found = {**self.of("Deployment"), **self.of("Job")}
        return {name: each["spec"]["template"] for name, each in found.items()}

    @cached_property
    def containers(self) -> Mapping[str, Any]:
        """The only container of each pod."""
        return {name: pod["spec"]["containers"][0] for name, pod in self.pods.items()}

    def variables(self, kind: str) -> Mapping[str, str]:
        """Those of a kind of process, beside secrets."""
        return {each["name"]: each["value"] for each in self.containers[kind]["env"]}

    def secrets(self, kind: str) -> Mapping[str, str]:
        """Those that the chart gives a kind of process."""
        return self.of("Secret").get(kind, {}).get("stringData", {})


class Charts:
    """Renders the chart.

    Args:
        chart: Loaded.
    """

    def __init__(self, chart: helm_python.Chart) -> None:
        self._chart = chart

    def render(self, values: Mapping[str, Any]) -> Rendered:
        """A release of some values.

        Raises:
            HelmError: The chart refuses them.
        """
        files = self._chart.render(dict(values), name="docflow", namespace="documents")
        texts = [text for name, text in files.items() if name.endswith(".yaml")]
        objects = [each for text in texts for each in yaml.safe_load_all(text) if each]
        return Rendered(objects)


IMAGE = {name: {"digest": DIGEST} for name in ("gateway", "worker")}


def _is_secret(name: str) -> bool:
    return name in DECLARED and DECLARED[name].setting.secret


def sample_values() -> Mapping[str, Any]:
    """The values of an installation with every pipeline, and nothing that is optional."""
    own = {name: text for name, text in SAMPLE.items() if name not in CHART}
    return {
        "image": IMAGE,
        "settings": {
            "TEMPORAL_ADDRESS": "temporal:7233",
            **{name: text for name, text in own.items() if not _is_secret(name)},
        },
        "secrets": {name: text for name, text in own.items() if _is_secret(name)},
    }


def full_values() -> Mapping[str, Any]:
    """Everything on."""
    peers = [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}]
    scaled = {"enabled": True}
    process = {
        "enabled": True,
        "autoscaling": scaled,
        "secretFiles": "certificates",
        "serviceAccountAnnotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/docflow"},
        "podLabels": {"azure.workload.identity/use": "true"},
        "podAnnotations": {"team": "documents"},
        "nodeSelector": {"kubernetes.io/arch": "amd64"},
        "tolerations": [{"key": "documents", "operator": "Exists"}],
        "env": [{"name": "AWS_STS_REGIONAL_ENDPOINTS", "value": "regional"}],
    }
    values = sample_values()
    return {
        **values,
        "image": {**IMAGE, "pullSecrets": ["registry"]},
        "settings": {
            **values["settings"],
            "TEMPORAL_TLS_SERVER_NAME": "temporal.example.com",
            "DOCFLOW_TRUSTED_PROXIES": "10.0.0.0/8",
        },
        "secrets": {**values["secrets"], "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"},
        "files": {"jobsettings.json": "{}"},
        "processes": {each.name: process for each in kinds()},
        "keda": {"authentication": "temporal"},
        "ingress": {
            "enabled": True,
            "className": "nginx",
            "annotations": {"nginx.ingress.kubernetes.io/proxy-body-size": "600m"},
            "host": "docs.example.com",
            "tlsSecret": "docs-tls",
        },
        "networkPolicy": {
            "httpFrom": peers,
            "metricsFrom": peers,
            "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
        },
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    }
