"""All wrong settings are named at once, names that nothing reads as well, and no secret ever."""

import logging
import re
from pathlib import Path

import pytest

from workers import catalogue
from workers.batches.settings import BatchSettings, CaseEventSettings
from workers.imports.settings import QueueSettings, RunSettings
from workers.shared.cli.errors import failures_in_one_line
from workers.shared.errors import SettingsError
from workers.shared.gateway.process import run_gateway
from workers.shared.process import run_bridge, run_worker
from workers.shared.register import Bridge, Pipeline, ReadSettings
from workers.shared.resources import CommonSettings, open_resources
from workers.shared.settings.base import Settings
from workers.shared.settings.check import (
    ELSEWHERE,
    check_at_start,
    check_settings,
    declared_groups,
    unread_names,
)
from workers.shared.settings.common import (
    BlobSettings,
    DatabaseSettings,
    NotificationSettings,
    ScratchSettings,
)
from workers.shared.settings.gateway import GatewaySettings

ROOT = Path(__file__).parents[2]
GROUPS = declared_groups()
PLANTED = "planted-secret"
DECLARED = {each.name: each for group in GROUPS for each in group.declared()}
SECRETS = [name for name, each in DECLARED.items() if each.setting.secret]


def test_all_problems_of_one_group_are_named_together() -> None:
    with pytest.raises(SettingsError) as failure:
        QueueSettings.read({"MAX_MESSAGES_PER_RUN": "ten", "MAX_WAIT_TIME_SECONDS": "0"})
    assert failure.value.problems == (
        "missing setting: AZURE_SERVICE_BUS_CONNECTION_STRING; "
        "set it in the environment, or run `make dev` for a stack that has everything",
        "MAX_MESSAGES_PER_RUN must be a whole number, not 'ten'",
        "MAX_WAIT_TIME_SECONDS must be between 1 and 3600, not 0",
    )
    assert str(failure.value) == "\n".join(failure.value.problems)


def test_rules_between_settings_are_named_together_with_the_rest() -> None:
    with pytest.raises(SettingsError) as failure:
        NotificationSettings.read(
            {"DOCFLOW_SMTP_URL": "smtps://mail", "DOCFLOW_ESCALATE_TO": "ops"}
        )
    assert [problem.partition(";")[0] for problem in failure.value.problems] == [
        "missing setting: DOCFLOW_NOTIFY_FROM",
        "DOCFLOW_ESCALATE_TO 'ops' is not a mail address",
    ]


def test_problems_of_several_groups_are_named_once_each() -> None:
    with pytest.raises(SettingsError) as failure:
        check_settings(
            {"DOCFLOW_PARK_FOR_DAYS": "0"}, BatchSettings, CaseEventSettings, RunSettings
        )
    problems = failure.value.problems
    assert len(set(problems)) == len(problems)
    named = {name for name in DECLARED if any(re.search(rf"\b{name}\b", it) for it in problems)}
    assert named == {
        "AWS_REGION",
        "DOCFLOW_BATCH_TOPIC_ARN",
        "DOCFLOW_BATCH_SOURCE_FUNCTION",
        "DOCFLOW_CASE_EVENTS_QUEUE_URL",
        "DOCFLOW_PARK_FOR_DAYS",
    }


def test_a_storage_account_is_checked_with_all_other_settings() -> None:
    wrong = {
        "AZURE_STORAGE_CONNECTION_STRING": f"AccountName=a;AccountKey={PLANTED}",
        "AZURE_STORAGE_CONTAINER_NAME": "../../up",
        "DATABASE_URL": f"postgresql://ada:{PLANTED}@host:notaport/name",
    }
    with pytest.raises(SettingsError) as failure:
        CommonSettings.read(wrong)
    assert failure.value.problems == (
        "AZURE_STORAGE_CONTAINER_NAME must be the name of one container or folder, not '../../up'",
        "AZURE_STORAGE_CONNECTION_STRING: the storage connection string's AccountKey is not base64",
        "DATABASE_URL: the port is not a number",
    )


@pytest.mark.parametrize("name", ["..", ".", "a/b", "/etc", "a\\b"])
def test_a_container_is_one_folder(name: str, tmp_path: Path) -> None:
    wrong = {"DOCFLOW_BLOB_FOLDER": str(tmp_path), "AZURE_STORAGE_CONTAINER_NAME": name}
    with pytest.raises(SettingsError, match="AZURE_STORAGE_CONTAINER_NAME must be the name"):
        BlobSettings.read(wrong)


async def test_folders_that_cannot_be_made_are_named_together(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    wrong = {
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/docflow",
        "DOCFLOW_BLOB_FOLDER": f"{tmp_path}/taken",
        "DOCFLOW_SCRATCH": f"{tmp_path}/taken",
    }
    with pytest.raises(SettingsError) as failure:
        async with open_resources(wrong):
            pass
    assert failure.value.problems == (
        f"DOCFLOW_SCRATCH: the folder {tmp_path}/taken cannot be made: File exists",
        f"DOCFLOW_BLOB_FOLDER: the folder {tmp_path}/taken/imports cannot be made: Not a directory",
    )


SHARED = {"AZURE_STORAGE_CONNECTION_STRING", "DATABASE_URL"}


def _missing(error: SettingsError) -> set[str]:
    return {re.split(r"[ ;]", problem)[2] for problem in error.problems}


def _missed_by(*readers: ReadSettings) -> set[str]:
    """Settings that groups miss where none is set."""
    missing: set[str] = set()
    for read in readers:
        try:
            read({})
        except SettingsError as error:
            missing |= _missing(error)
    return missing


@pytest.mark.parametrize("with_bridge", [False, True], ids=["alone", "with bridges"])
@pytest.mark.parametrize("pipeline", catalogue.PIPELINES, ids=lambda pipeline: pipeline.name)
async def test_a_worker_names_everything_that_it_misses(
    pipeline: Pipeline, with_bridge: bool
) -> None:
    bridges = [bridge for bridge in pipeline.bridges if bridge.with_worker and with_bridge]
    with pytest.raises(SettingsError) as failure:
        await run_worker([pipeline.name], {}, with_bridge=with_bridge)
    expected = SHARED | _missed_by(pipeline.settings, *(bridge.settings for bridge in bridges))
    assert _missing(failure.value) == expected


@pytest.mark.parametrize(
    "bridge",
    [bridge for pipeline in catalogue.PIPELINES for bridge in pipeline.bridges],
    ids=lambda bridge: bridge.name,
)
async def test_a_bridge_names_everything_that_it_misses(bridge: Bridge) -> None:
    with pytest.raises(SettingsError) as failure:
        await run_bridge(bridge, {})
    shared = SHARED if bridge.needs_resources else set[str]()
    assert _missing(failure.value) == shared | _missed_by(bridge.settings)


async def test_a_worker_of_several_pipelines_names_what_all_of_them_miss() -> None:
    with pytest.raises(SettingsError) as failure:
        await run_worker([each.name for each in catalogue.PIPELINES], {}, with_bridge=True)
    assert _missing(failure.value) >= SHARED | {
        *("AWS_REGION", "DOCFLOW_BATCH_TOPIC_ARN", "DOCFLOW_BATCH_SOURCE_FUNCTION"),
        *("AZURE_SERVICE_BUS_CONNECTION_STRING", "DOCFLOW_CASE_EVENTS_QUEUE_URL"),
    }


async def test_a_gateway_names_its_own_settings_and_those_of_its_resources() -> None:
    with pytest.raises(SettingsError) as failure:
        await run_gateway({"DOCFLOW_UPLOAD_LIMIT_MB": "0"}, host="127.0.0.1", port=0)
    for name in ("DOCFLOW_JWT_KEY", "DOCFLOW_UPLOAD_LIMIT_MB", *SHARED):
        assert name in str(failure.value)


async def test_settings_of_a_pipeline_stop_no_other_process() -> None:
    wrong = {"DOCFLOW_PARK_FOR_DAYS": "0"}
    for process in (
        run_gateway(wrong, host="127.0.0.1", port=0),
        run_worker(["spreadsheets"], wrong),
    ):
        with pytest.raises(SettingsError) as failure:
            await process
        assert "DOCFLOW_PARK_FOR_DAYS" not in str(failure.value)
    with pytest.raises(SettingsError, match="DOCFLOW_PARK_FOR_DAYS"):
        await run_worker(["imports"], wrong)


def test_a_command_prints_each_problem_on_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BaseException) as stopped, failures_in_one_line():
        check_settings({}, QueueSettings, DatabaseSettings)
    assert type(stopped.value).__name__ == "Exit"
    lines = capsys.readouterr().err.splitlines()
    assert [line[:44] for line in lines] == [
        "docflow: missing setting: AZURE_SERVICE_BUS_",
        "docflow: missing setting: DATABASE_URL; set ",
    ]


def test_values_come_from_the_mapping_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/docflow")
    monkeypatch.setenv("MAX_MESSAGES_PER_RUN", "999")
    monkeypatch.chdir(tmp_path)
    Path(".env").write_text(
        "DATABASE_URL=postgresql://nobody@127.0.0.1:1/docflow\nMAX_MESSAGES_PER_RUN=998\n"
    )
    with pytest.raises(SettingsError, match="missing setting: DATABASE_URL"):
        DatabaseSettings.read({})
    assert QueueSettings(connection_string="x").max_messages == 10


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        RunSettings.read({}).park_for_days = 3


def test_a_planted_secret_appears_in_no_message_and_no_repr() -> None:
    for group in GROUPS:
        names = [each.name for each in group.every()]
        for secret in (name for name in names if name in SECRETS):
            for value in (PLANTED, f"//{PLANTED}", f"whsec_*{PLANTED}", f"smtp://a:{PLANTED}@h"):
                try:
                    shown = repr(group.read({secret: value}))
                except SettingsError as error:
                    shown = f"{error!r}{error.__cause__!r}"
                assert PLANTED not in shown, secret


def test_the_repr_of_settings_that_are_right_holds_no_secret() -> None:
    url = f"postgresql://docflow:{PLANTED}@db/docflow"
    read: list[Settings] = [
        DatabaseSettings.read({"DATABASE_URL": url}),
        QueueSettings.read({"AZURE_SERVICE_BUS_CONNECTION_STRING": PLANTED}),
        BlobSettings.read(
            {"AZURE_STORAGE_CONNECTION_STRING": f"AccountName=a;SharedAccessSignature={PLANTED}"}
        ),
        GatewaySettings.read({"DOCFLOW_JWT_KEY": PLANTED * 3}),
        NotificationSettings.read(
            {
                "DOCFLOW_SMTP_URL": f"smtps://a:{PLANTED}@mail",
                "DOCFLOW_NOTIFY_FROM": "a@example.org",
                "DOCFLOW_NOTIFY_WEBHOOK_URL": f"https://hook/{PLANTED}",
                "DOCFLOW_NOTIFY_WEBHOOK_SECRET": PLANTED,
            }
        ),
    ]
    for settings in read:
        assert PLANTED not in f"{settings!r}{settings!s}", type(settings)


def test_a_mistyped_name_is_named_with_the_nearest_one(caplog: pytest.LogCaptureFixture) -> None:
    check_at_start(
        {"DOCFLOW_SCRACH": PLANTED, "DOCFLOW_SCRATCH": "/tmp", "HOME": "/"}, ScratchSettings
    )
    assert [(record.levelno, record.message) for record in caplog.records] == [
        (
            logging.WARNING,
            "DOCFLOW_SCRACH is not a setting and is ignored; did you mean DOCFLOW_SCRATCH?",
        )
    ]


def test_a_mistyped_name_is_named_before_what_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    mistyped = {"DOCFLOW_BATCH_TOPIC_AN": "arn:aws:sns:eu-central-1:1:documents"}
    with pytest.raises(SettingsError, match="missing setting: DOCFLOW_BATCH_TOPIC_ARN"):
        check_at_start(mistyped, BatchSettings)
    assert "did you mean DOCFLOW_BATCH_TOPIC_ARN?" in caplog.text


def test_an_unknown_name_without_a_near_one_refers_to_the_reference() -> None:
    (warning,) = unread_names({"DOCFLOW_QQQQQQQQQQQQQQQQQQQQ": "x"})
    assert warning.endswith("docs/reference/settings.md lists them")


def test_no_name_that_the_project_uses_is_warned_of() -> None:
    folders = ("workers", "adapters", "activities", "deploy", "benchmarks", "tests")
    files = [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".yaml", ".example") or path.name == "Dockerfile"
    ]
    used = {
        name
        for path in files
        if path != Path(__file__)
        for name in re.findall(r"\bDOCFLOW_[A-Z_]*[A-Z]\b", path.read_text())
    }
    assert len(used) > 40
    assert list(unread_names(dict.fromkeys(used, "x"))) == []
    assert used >= ELSEWHERE
