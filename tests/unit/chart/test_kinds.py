"""What the chart knows of each kind of process is what docflow's code says."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml
from temporalio.service import TLSConfig

from tests.chart import (
    CHART,
    FILE,
    GATEWAY,
    SAMPLE,
    TEMPORAL,
    TEMPORAL_SECRETS,
    Environment,
    Kind,
    context,
    kinds,
    reads,
    text,
)
from workers import catalogue
from workers.shared.connect import read_config
from workers.shared.errors import SettingsError
from workers.shared.gateway.app import open_parts, part_settings
from workers.shared.register import load
from workers.shared.services.run_notifications import read_addresses
from workers.shared.services.setup import notices_of
from workers.shared.settings.base import Settings
from workers.shared.settings.check import declared_groups
from workers.shared.settings.common import (
    BlobSettings,
    DatabaseSettings,
    HttpSettings,
    LogSettings,
    ScratchSettings,
    WorkerSettings,
    WorkflowSettings,
)
from workers.shared.settings.gateway import GatewaySettings
from workers.shared.settings.sign_in import read_providers

every_kind = pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)


async def test_the_committed_kinds_are_those_of_the_code() -> None:
    assert FILE.read_text() == await text(), "run `python -m tests.chart`"


def test_every_pipeline_has_a_worker_in_the_chart() -> None:
    described = yaml.safe_load(FILE.read_text())
    commands = [each["command"] for each in described.values()]
    served = {words[1] for words in commands if words[0] == "worker"}
    assert served == {pipeline.name for pipeline in catalogue.PIPELINES}


def test_every_bridge_is_a_process_or_part_of_one() -> None:
    alone = {kind.bridge for kind in kinds()}
    beside = {kind.pipeline for kind in kinds() if kind.has_bridge}
    for pipeline in catalogue.PIPELINES:
        for bridge in pipeline.bridges:
            assert pipeline in beside if bridge.with_worker else bridge in alone, bridge.name


@every_kind
async def test_a_kind_gets_every_variable_that_it_reads(kind: Kind) -> None:
    listed = {*kind.variables(secret=True), *kind.variables(secret=False), *CHART}
    # Former names of a variable, and its file, are for those who set it without the chart.
    known = {each.name for group in declared_groups() for each in group.declared()}
    read = await _read_by(kind)
    assert read
    assert (read & known) - listed == set()


async def _read_by(kind: Kind) -> set[str]:
    """What the code of a process reads when it starts, as far as that needs no server."""
    environment = Environment(SAMPLE)
    async with AsyncExitStack() as stack:
        if kind.command == ("db", "upgrade"):
            DatabaseSettings.read(environment)
        elif kind.command == ("setup",):
            DatabaseSettings.read(environment)
            BlobSettings.read(environment)
            notices_of(environment)
            for pipeline in catalogue.PIPELINES:
                for part in (pipeline, *pipeline.bridges):
                    if part.requirements is not None:
                        await stack.enter_async_context(load(part.requirements)(environment))
        elif kind is GATEWAY:
            own = {name: group.read(environment) for name, group in part_settings().items()}
            open_parts(context(environment), own)
            read_providers(environment)
            _read(environment, GatewaySettings, HttpSettings, LogSettings)
        else:
            _read(environment, HttpSettings, LogSettings)
            await _read_by_runs(kind, environment, stack)
    return environment.read


async def _read_by_runs(kind: Kind, environment: Environment, stack: AsyncExitStack) -> None:
    """What a worker or bridge reads beyond the settings of every process."""
    if kind.bridge is None or kind.bridge.needs_resources:
        _read(environment, BlobSettings, DatabaseSettings, ScratchSettings)
    if kind.bridge is not None:
        kind.bridge.settings(environment)
        return
    pipeline = kind.pipeline
    assert pipeline is not None
    _read(environment, WorkerSettings, WorkflowSettings)
    read_addresses(environment)
    for bridge in pipeline.bridges:
        if bridge.with_worker:
            bridge.settings(environment)
    if pipeline.requirements is not None:
        await stack.enter_async_context(load(pipeline.requirements)(environment))
    settings = pipeline.settings(environment)
    await stack.enter_async_context(pipeline.open(context(environment), settings))
    pipeline.lanes_in(environment)
    pipeline.schedules_of_settings(environment)


def _read(environment: Environment, *groups: type[Settings]) -> None:
    for group in groups:
        group.read(environment)


def test_a_variable_that_is_read_is_noticed() -> None:
    environment = Environment({"DOCFLOW_SCRATCH": "/scratch"})
    assert ScratchSettings.read(environment).folder.as_posix() == "/scratch"
    assert environment.read == {"DOCFLOW_SCRATCH"}


def test_variables_of_temporal_are_those_of_its_sdk(tmp_path: Path) -> None:
    values = {name: name for name in (*TEMPORAL, *TEMPORAL_SECRETS)}
    values |= {"TEMPORAL_ADDRESS": "temporal:7233", "TEMPORAL_TLS": "true"}
    for name in TEMPORAL:
        if name.endswith("_PATH"):
            values[name] = str(tmp_path / name)
            (tmp_path / name).write_text(name)
    profile = tmp_path / "temporal.toml"
    profile.write_text("[profile.TEMPORAL_PROFILE]\naddress = 'elsewhere:7233'\n")
    config = read_config({**values, "TEMPORAL_CONFIG_FILE": str(profile)})
    assert config.get("target_host") == "temporal:7233"
    assert config.get("namespace") == "TEMPORAL_NAMESPACE"
    assert config.get("api_key") == "TEMPORAL_API_KEY"
    tls = config.get("tls")
    assert isinstance(tls, TLSConfig)
    assert tls.domain == "TEMPORAL_TLS_SERVER_NAME"
    assert tls.server_root_ca_cert == b"TEMPORAL_TLS_SERVER_CA_CERT_PATH"
    assert tls.client_cert == b"TEMPORAL_TLS_CLIENT_CERT_PATH"
    assert tls.client_private_key == b"TEMPORAL_TLS_CLIENT_KEY_PATH"
    with pytest.raises(SettingsError, match="TEMPORAL_PROFILE"):
        read_config({**values, "TEMPORAL_CONFIG_FILE": str(profile), "TEMPORAL_PROFILE": "other"})


@pytest.mark.parametrize(
    ("used_by", "names"),
    [
        ("gateway", {"gateway"}),
        ("`docflow gateway`, `docflow token sign`", {"gateway"}),
        ("`docflow setup`, dry runs", {"setup"}),
        ("workers of jobs, gateway", {"gateway", "worker-jobs"}),
        ("the bridge of imports", {"worker-imports"}),
        ("`docflow bridge event-hub`", {"event-hub"}),
        ("bridges of batches", {"worker-batches", "batch-loader"}),
        ("workers and bridges of Service Bus queues", set[str]()),
    ],
)
def test_the_reference_says_which_processes_read_a_group(used_by: str, names: set[str]) -> None:
    assert {kind.name for kind in kinds() if reads(kind, used_by)} == names


def test_nearly_every_process_reads_what_all_but_one_do() -> None:
    used_by = "everything but `docflow bridge batch-loader`"
    assert {kind.name for kind in kinds() if not reads(kind, used_by)} == {"batch-loader"}


def test_a_group_of_settings_that_names_nobody_is_noticed() -> None:
    with pytest.raises(AssertionError, match="nobody knows who 'the others' are"):
        reads(GATEWAY, "the others")
