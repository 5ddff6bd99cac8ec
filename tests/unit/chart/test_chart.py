"""What the chart deploys is what docflow, Kubernetes, KEDA and Prometheus Operator understand."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import helm_python
import httpx
import kubernetes_validate
import pytest
import typer.main
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from kubernetes_validate import utils

from adapters.files import limits
from adapters.files.rasters.pool import DEFAULT_BOUNDS
from adapters.files.texts.pool import READ_AT_ONCE
from tests.chart import GATEWAY, SAMPLE, Kind, kinds
from tests.support.chart import DECLARED, DIGEST, FOLDER, Charts, Rendered, full_values
from workers import catalogue
from workers.shared.cli.app import app
from workers.shared.gateway.process import Entrance
from workers.shared.health import Health
from workers.shared.health_server import serve_health
from workers.shared.machine import MB, PROCESS_BYTES, slots_of
from workers.shared.settings.common import WorkerSettings
from workers.spreadsheets.settings import EXPORTS_READ_AT_ONCE

ROOT = FOLDER.parents[1]
OLDEST, NEWEST = "1.30", "1.37"
"""Versions of Kubernetes."""
CUSTOM = {
    "ScaledObject": Draft202012Validator(
        json.loads(Path(__file__).with_name("scaled_object.json").read_text())
    ),
    "ServiceMonitor": Draft202012Validator(
        json.loads(Path(__file__).with_name("service_monitor.json").read_text())
    ),
}
STAYING = [kind for kind in kinds() if kind.has_ports]
every_kind = pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
every_staying_kind = pytest.mark.parametrize("kind", STAYING, ids=lambda kind: kind.name)


@pytest.fixture(autouse=True, scope="module")
def schemas_read_once() -> Any:
    """Schemas of Kubernetes have megabytes, and are read anew for each object otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utils, "schema_contents", cache(utils.schema_contents))
        yield


def check(each: Mapping[str, Any], version: str) -> None:
    """Validate one object.

    Raises:
        jsonschema.ValidationError: Its schema does not allow it.
    """
    if each["kind"] in CUSTOM:
        CUSTOM[each["kind"]].validate(each)
    else:
        kubernetes_validate.validate(dict(each), version, strict=True)


@pytest.mark.parametrize("values", ["plain", "sample", "full"])
@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_every_object_is_valid(values: str, version: str, request: pytest.FixtureRequest) -> None:
    rendered: Rendered = request.getfixturevalue(values)
    assert rendered.objects
    for each in rendered.objects:
        check(each, version)
    names = [(each["kind"], each["metadata"]["name"]) for each in rendered.objects]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        ("Deployment", ("spec", "template", "spec", "container"), []),
        ("Deployment", ("spec", "replicas"), "two"),
        ("NetworkPolicy", ("spec", "ingres"), []),
        ("ScaledObject", ("spec", "triggers"), [{"type": "temporal", "metadata": {}}]),
        ("ScaledObject", ("spec", "minReplicas"), 2),
        ("ServiceMonitor", ("spec", "endpoints"), [{"targetPort": 9090}]),
    ],
)
def test_an_object_that_is_wrong_is_refused(
    full: Rendered, kind: str, place: Sequence[str], value: object
) -> None:
    wrong = json.loads(json.dumps(next(each for each in full.objects if each["kind"] == kind)))
    inside = wrong
    for name in place[:-1]:
        inside = inside[name]
    inside[place[-1]] = value
    with pytest.raises(ValidationError):
        check(wrong, NEWEST)


def test_lint_finds_nothing_worse_than_a_missing_icon() -> None:
    found = helm_python.lint(FOLDER, dict(full_values()), strict=True)
    assert [each["error"] for each in found["messages"]] == ["icon is recommended"]


def test_the_chart_has_the_version_of_docflow() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with helm_python.Chart.load(FOLDER) as chart:
        assert chart.version == project["version"] == chart.metadata["appVersion"]


def test_processes_without_settings_are_those_of_every_installation(plain: Rendered) -> None:
    expected = {
        "gateway",
        *(f"worker-{each.name}" for each in catalogue.PIPELINES if not each.enabled_by),
    }
    assert plain.of("Deployment").keys() == expected
    assert plain.of("Job").keys() == {"migrate", "setup"}
    assert not plain.of("Secret")
    assert not plain.of("ScaledObject") and not plain.of("ServiceMonitor")


def test_a_setting_enables_the_worker_that_needs_it(sample: Rendered) -> None:
    workers = {f"worker-{each.name}" for each in catalogue.PIPELINES}
    assert sample.of("Deployment").keys() == {"gateway", *workers}


@every_kind
def test_a_kind_is_deployed_once(full: Rendered, kind: Kind) -> None:
    assert (kind.name in full.of("Deployment")) is kind.has_ports
    assert (kind.name in full.of("Job")) is not kind.has_ports


@every_kind
def test_its_arguments_are_those_of_a_command(full: Rendered, kind: Kind) -> None:
    command: Any = typer.main.get_command(app)
    arguments = list(full.containers[kind.name]["args"])
    assert tuple(arguments[: len(kind.command)]) == kind.command
    while hasattr(command, "commands"):
        command = command.commands[arguments.pop(0)]
    # Parses and checks the arguments, and does nothing.
    command.make_context("docflow", arguments)


def test_workers_receive_messages_as_their_values_say(sample: Rendered) -> None:
    receiving = {
        name for name, each in sample.containers.items() if "--with-bridge" in each["args"]
    }
    can = {kind.name for kind in kinds() if kind.has_bridge}
    assert receiving == can - {"worker-jobs"}


@every_staying_kind
async def test_its_probes_and_ports_are_there(full: Rendered, kind: Kind) -> None:
    container = full.containers[kind.name]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    options = dict(zip(container["args"], container["args"][1:], strict=False))
    option = "--port" if kind is GATEWAY else "--health-port"
    probed = container["livenessProbe"]["httpGet"], container["readinessProbe"]["httpGet"]
    assert {each["port"] for each in probed} == ports.keys() - {"metrics"}
    assert {int(options[option]), int(options["--metrics-port"])} == set(ports.values())
    health = Health(ready=True)
    if kind is GATEWAY:
        transport = httpx.ASGITransport(Entrance(health))
        async with httpx.AsyncClient(transport=transport, base_url="http://10.0.0.1:8000") as pod:
            answers = [await pod.get(each["path"]) for each in probed]
    else:
        async with serve_health(health, 0) as port, httpx.AsyncClient() as pod:
            answers = [await pod.get(f"http://127.0.0.1:{port}{each['path']}") for each in probed]
    assert [each.status_code for each in answers] == [200, 200]


@every_kind
def test_it_gets_the_variables_and_secrets_that_it_reads(full: Rendered, kind: Kind) -> None:
    own = {"DOCFLOW_SCRATCH", "DOCFLOW_SECRETS_DIR", "AWS_STS_REGIONAL_ENDPOINTS"}
    variables, secrets = full.variables(kind.name), full.secrets(kind.name)
    assert variables.keys() - own <= set(kind.variables(secret=False))
    assert secrets.keys() <= set(kind.variables(secret=True))
    needed = {name for name in SAMPLE if name in DECLARED} - own
    read = {*kind.variables(secret=False), *kind.variables(secret=True)}
    assert needed & read <= variables.keys() | secrets.keys()


def test_each_secret_is_mounted_by_one_kind_alone(full: Rendered) -> None:
    mounted = {
        name: [
            each["secret"]["secretName"]
            for each in pod["spec"]["volumes"]
            if each["name"] == "secrets"
        ]
        for name, pod in full.pods.items()
    }
    assert mounted == {kind.name: [f"docflow-{kind.name}"] for kind in kinds()}
    for name, container in full.containers.items():
        places = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
        assert places["secrets"] == full.variables(name)["DOCFLOW_SECRETS_DIR"]


def test_a_loader_of_batches_knows_no_database_and_a_gateway_no_queue(full: Rendered) -> None:
    assert "DATABASE_URL" not in full.secrets("batch-loader")
    assert "AZURE_SERVICE_BUS_CONNECTION_STRING" not in full.secrets("gateway")
    assert full.secrets("migrate").keys() == {"DATABASE_URL"}
    assert "DOCFLOW_JWT_KEY" in full.secrets("gateway")
    others = [kind.name for kind in kinds() if kind is not GATEWAY]
    assert not [name for name in others if "DOCFLOW_JWT_KEY" in full.secrets(name)]


def test_a_secret_of_the_installation_takes_the_place_of_the_charts(charts: Charts) -> None:
    values = {"secrets": {"DATABASE_URL": "postgresql://db/docflow"}}
    processes = {"gateway": {"existingSecret": "vault-gateway"}}
    rendered = charts.render({**values, "processes": processes})
    assert "gateway" not in rendered.of("Secret") and "worker-imports" in rendered.of("Secret")
    [volume] = [each for each in rendered.pods["gateway"]["spec"]["volumes"] if "secret" in each]
    assert volume["secret"]["secretName"] == "vault-gateway"


def test_a_kind_may_have_a_value_of_its_own(charts: Charts) -> None:
    values = {
        "secrets": {"DATABASE_URL": "postgresql://worker@db/docflow"},
        "processes": {"migrate": {"secrets": {"DATABASE_URL": "postgresql://owner@db/docflow"}}},
    }
    rendered = charts.render(values)
    assert rendered.secrets("migrate") == {"DATABASE_URL": "postgresql://owner@db/docflow"}
    assert rendered.secrets("setup") == {"DATABASE_URL": "postgresql://worker@db/docflow"}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"settings": {"DATABASE_URL": "x"}}, "DATABASE_URL is a secret"),
        ({"settings": {"PGNOTHING": "x"}}, "no process of the chart reads PGNOTHING"),
        ({"settings": {"DOCFLOW_SCRATCH": "/x"}}, "or the chart sets it itself"),
        ({"settings": {"DOCFLOW_ACTIVITY_SLOTS": 3}}, "got number, want string"),
        ({"secrets": {"AWS_REGION": "x"}}, "AWS_REGION is not a secret"),
        ({"processes": {"gatway": {}}}, "there is no such kind of process"),
        ({"processes": {"gateway": {"replica": 1}}}, "'replica' not allowed"),
        ({"processes": {"gateway": {"settings": {"AWS_REGION": "x"}}}}, "processes.gateway"),
        ({"image": {"worker": {"digest": "sha256:1"}}}, "does not match pattern"),
        ({"ingress": {"enabled": True}}, "ingress.host"),
        ({"ingress": {"enabled": True, "host": "docs.example.com"}}, "DOCFLOW_TRUSTED_PROXIES"),
        (
            {"processes": {"worker-imports": {"autoscaling": {"enabled": True}}}},
            "TEMPORAL_ADDRESS",
        ),
    ],
)
def test_wrong_values_are_refused(charts: Charts, values: Mapping[str, Any], says: str) -> None:
    with pytest.raises(helm_python.HelmError, match=says):
        charts.render(values)


@every_kind
def test_a_pod_may_do_next_to_nothing(full: Rendered, kind: Kind) -> None:
    pod = full.pods[kind.name]["spec"]
    assert "initContainers" not in pod
    assert pod["automountServiceAccountToken"] is False
    assert pod["serviceAccountName"] in {
        each["metadata"]["name"] for each in full.of("ServiceAccount").values()
    }
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    [container] = pod["containers"]
    assert container["image"] == f"docflow-{'worker' if kind.libraries else 'gateway'}@{DIGEST}"
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@every_staying_kind
def test_pods_of_a_kind_are_spread_and_go_one_by_one(full: Rendered, kind: Kind) -> None:
    labels = full.pods[kind.name]["metadata"]["labels"]
    spread = full.pods[kind.name]["spec"]["topologySpreadConstraints"]
    budget = full.of("PodDisruptionBudget")[kind.name]["spec"]
    deployment = full.of("Deployment")[kind.name]["spec"]
    selected = [each["labelSelector"]["matchLabels"] for each in spread]
    selected += [budget["selector"]["matchLabels"], deployment["selector"]["matchLabels"]]
    assert len(selected) == 4
    for each in selected:
        assert each["app.kubernetes.io/component"] == kind.name
        assert each.items() <= labels.items()
    assert budget["maxUnavailable"] == 1


def test_schema_and_setup_come_before_everything_else(full: Rendered) -> None:
    hook = "helm.sh/hook"
    before = [each for each in full.objects if hook in each["metadata"].get("annotations", {})]
    weights = {
        (each["kind"], each["metadata"]["name"]): int(
            each["metadata"]["annotations"][f"{hook}-weight"]
        )
        for each in before
    }
    assert {each["metadata"]["annotations"][hook] for each in before} == {"pre-install,pre-upgrade"}
    jobs = weights["Job", "docflow-migrate"], weights["Job", "docflow-setup"]
    assert jobs[0] < jobs[1]
    needed = {name: weight for name, weight in weights.items() if name[0] != "Job"}
    assert needed.keys() == {
        *(("ServiceAccount", f"docflow-{name}") for name in ("migrate", "setup")),
        *(("Secret", f"docflow-{name}") for name in ("migrate", "setup")),
        ("ConfigMap", "docflow-files-before"),
    }
    assert max(needed.values()) < jobs[0]


def test_workers_are_scaled_by_every_task_queue_and_by_cpu(full: Rendered) -> None:
    scaled = full.of("ScaledObject")
    assert scaled.keys() == {f"worker-{each.name}" for each in catalogue.PIPELINES}
    for pipeline in catalogue.PIPELINES:
        triggers = scaled[f"worker-{pipeline.name}"]["spec"]["triggers"]
        found = {
            each["metadata"]["taskQueue"]: each["metadata"]["queueTypes"]
            for each in triggers
            if each["type"] == "temporal"
        }
        lanes = {
            lane.task_queue: "activity" if lane.workflows is None else "workflow,activity"
            for lane in pipeline.lanes_in({})
        }
        assert found == {pipeline.task_queue: "workflow,activity", **lanes}
        assert [each["type"] for each in triggers].count("cpu") == 1
        assert "cpu" in full.containers[f"worker-{pipeline.name}"]["resources"]["requests"]


def test_other_processes_are_scaled_by_cpu_alone(full: Rendered, plain: Rendered) -> None:
    others = {kind.name for kind in STAYING if not kind.is_worker}
    assert full.of("HorizontalPodAutoscaler").keys() == others
    assert plain.of("HorizontalPodAutoscaler").keys() == {"gateway"}
    for name, each in (plain.of("Deployment") | full.of("Deployment")).items():
        assert ("replicas" in each["spec"]) is (name not in full.of("Deployment"))


def test_services_policies_and_monitor_reach_ports_that_there_are(full: Rendered) -> None:
    ports = {
        kind.name: {each["name"] for each in full.containers[kind.name]["ports"]}
        for kind in STAYING
    }
    gateway, metrics = full.of("Service")["gateway"], full.of("Service")["metrics"]
    assert {each["targetPort"] for each in gateway["spec"]["ports"]} <= ports["gateway"]
    assert all("metrics" in each for each in ports.values())
    [monitor] = [each for each in full.objects if each["kind"] == "ServiceMonitor"]
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= metrics["metadata"]["labels"].items()
    assert not wanted.items() <= gateway["metadata"]["labels"].items()
    assert [each["port"] for each in monitor["spec"]["endpoints"]] == ["metrics"]
    policies = [each["spec"] for each in full.objects if each["kind"] == "NetworkPolicy"]
    opened = {
        port["port"] for each in policies for rule in each["ingress"] for port in rule["ports"]
    }
    assert opened == {"metrics", "http"}
    [ingress] = [each for each in full.objects if each["kind"] == "Ingress"]
    [path] = ingress["spec"]["rules"][0]["http"]["paths"]
    assert path["backend"]["service"]["name"] == gateway["metadata"]["name"]


def test_readers_at_once_fit_into_the_memory_of_a_pod(sample: Rendered) -> None:
    """What one process may take, from limits and slots of the code, and not from the registers."""

    def slots(kind: str, name: str) -> int:
        return int(sample.variables(kind)[name])

    def activities(kind: str) -> int:
        return slots(kind, "DOCFLOW_ACTIVITY_SLOTS")

    heavy = max(limits.VECTOR_MEMORY_BYTES, DEFAULT_BOUNDS.memory_bytes)
    readers = {
        "gateway": EXPORTS_READ_AT_ONCE * limits.LEGACY_MEMORY_BYTES,
        "worker-imports": limits.LEGACY_MEMORY_BYTES
        * (activities("worker-imports") + slots("worker-imports", "DOCFLOW_LOCAL_SLOTS")),
        "worker-spreadsheets": limits.LEGACY_MEMORY_BYTES * activities("worker-spreadsheets"),
        "worker-batches": READ_AT_ONCE * limits.READER_MEMORY_BYTES,
        "worker-jobs": heavy * slots("worker-jobs", "DOCFLOW_JOBS_HEAVY_SLOTS"),
        "worker-transfers": 0,
    }
    assert readers.keys() == sample.of("Deployment").keys()
    for name, read in readers.items():
        resources = sample.containers[name]["resources"]
        limit = int(resources["limits"]["memory"].removesuffix("Mi")) * MB
        request = int(resources["requests"]["memory"].removesuffix("Mi")) * MB
        assert PROCESS_BYTES + read <= limit, name
        # It may ask for what it always takes, and need not for what hostile files may take.
        assert PROCESS_BYTES <= request <= limit - read, name


def test_a_worker_would_take_as_many_activities_by_itself(sample: Rendered) -> None:
    for pipeline in catalogue.PIPELINES:
        name = f"worker-{pipeline.name}"
        limit = int(sample.containers[name]["resources"]["limits"]["memory"].removesuffix("Mi"))
        fits = slots_of([pipeline], 20, WorkerSettings.read({}), limit * MB)[pipeline.name]
        assert int(sample.variables(name)["DOCFLOW_ACTIVITY_SLOTS"]) <= fits.activities


def test_memory_follows_from_slots(charts: Charts) -> None:
    def limit(slots: str) -> int:
        settings = {"DOCFLOW_ACTIVITY_SLOTS": slots}
        rendered = charts.render({"processes": {"worker-spreadsheets": {"settings": settings}}})
        text = rendered.containers["worker-spreadsheets"]["resources"]["limits"]["memory"]
        return int(text.removesuffix("Mi")) * MB

    [readers] = [each for each in _spreadsheets().readers() if not each.in_gateway]
    each = readers.memory_bytes + _spreadsheets().activity_bytes
    assert limit("4") - limit("1") == 3 * each


def _spreadsheets() -> Any:
    [found] = [each for each in catalogue.PIPELINES if each.name == "spreadsheets"]
    return found


def test_memory_of_a_heavy_task_takes_the_place_of_the_usual_one(charts: Charts) -> None:
    settings = {"DOCFLOW_BRONZE_CONTAINER": "bronze", "DOCFLOW_JOBS_HEAVY_MEMORY_MB": "1000"}
    usual = charts.render({"settings": {"DOCFLOW_BRONZE_CONTAINER": "bronze"}})
    smaller = charts.render({"settings": settings})

    def limit(rendered: Rendered) -> int:
        return int(rendered.containers["worker-jobs"]["resources"]["limits"]["memory"][:-2])

    assert limit(usual) - limit(smaller) == limits.VECTOR_MEMORY_BYTES // MB - 1000


def test_the_page_has_every_value_and_no_other() -> None:
    with helm_python.Chart.load(FOLDER) as chart:
        values = chart.values
    named = set(re.findall(r"`([\w.]+)`", _column(_table("value"), 0)))
    # `resources` and the like have no default that could be divided.
    found = {
        f"{name}.{inner}" if below is None else f"{name}.{inner}.{below}"
        for name in ("image", "defaults", "keda", "ingress", "networkPolicy", "serviceMonitor")
        for inner, value in values[name].items()
        for below in (value if inner == "autoscaling" else (None,))
    }
    tops = {"settings", "secrets", "files", "defaults", "podDisruptionBudget.enabled"}
    assert named == found | tops
    assert {name.partition(".")[0] for name in named} == values.keys() - {"processes"}


def test_the_page_has_the_memory_of_every_kind(full: Rendered) -> None:
    found = {
        name: (row[1], row[2])
        for row in _table("kind", "request")
        for name in re.findall(r"`([\w-]+)`", row[0])
    }
    assert found == {
        name: (each["resources"]["requests"]["memory"], each["resources"]["limits"]["memory"])
        for name, each in full.containers.items()
    }


def test_the_page_says_what_enables_each_kind() -> None:
    found = {
        name: set(re.findall(r"`(DOCFLOW_\w+)`", row[2]))
        for row in _table("kind", "runs")
        for name in re.findall(r"`([\w-]+)`", row[0])
    }
    assert found == {kind.name: set(filter(None, [kind.enabled_by])) for kind in kinds()}


def _table(*header: str) -> Sequence[Sequence[str]]:
    """The cells of the table of docs/kubernetes.md that begins with this header."""
    text = (ROOT / "docs" / "kubernetes.md").read_text()
    [found] = re.findall(
        rf"^\| {' [|] '.join(header)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE
    )
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in found.splitlines()]


def _column(table: Sequence[Sequence[str]], place: int) -> str:
    return " ".join(row[place] for row in table)


def test_resources_of_the_values_take_the_place_of_computed_ones(charts: Charts) -> None:
    resources = {"limits": {"memory": "2Gi"}}
    rendered = charts.render({"processes": {"gateway": {"resources": resources}}})
    assert rendered.containers["gateway"]["resources"]["limits"] == {"memory": "2Gi"}
    assert "memory" in rendered.containers["gateway"]["resources"]["requests"]
