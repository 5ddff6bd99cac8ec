"""Secrets come from files, in the ways of Docker and Kubernetes."""

from pathlib import Path

import pytest

from workers.imports.settings import QueueSettings
from workers.shared.errors import SettingsError
from workers.shared.settings.aws import CloudSettings
from workers.shared.settings.base import Settings
from workers.shared.settings.check import declared_groups, unread_names
from workers.shared.settings.common import BlobSettings, DatabaseSettings
from workers.shared.settings.gateway import GatewaySettings

URL = "postgresql://docflow:hidden@db/docflow"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "database_url"
    path.write_text(f" {URL} \n")
    return path


def test_every_secret_can_come_from_a_file_of_its_own(tmp_path: Path) -> None:
    secrets = [
        (group, each)
        for group in declared_groups()
        for each in group.declared()
        if each.setting.secret
    ]
    assert len(secrets) >= 11
    for group, each in secrets:
        missing = str(tmp_path / "missing")
        with pytest.raises(SettingsError, match=f"{each.name} cannot be read from its file"):
            group.read({f"{each.name}_FILE": missing})


def test_a_secret_is_read_from_its_file_without_the_line_end(file: Path) -> None:
    assert DatabaseSettings.read({"DATABASE_URL_FILE": str(file)}).url == URL


def test_a_secret_is_read_from_a_group_within_a_group(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k" * 32 + "\r\n")
    settings = GatewaySettings.read({"DOCFLOW_JWT_KEY_FILE": str(tmp_path / "key")})
    assert settings.tokens.key == "k" * 32


@pytest.mark.parametrize("name", ["database_url", "DATABASE_URL"])
def test_a_secret_is_read_from_the_folder_of_secrets(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(URL)
    assert DatabaseSettings.read({"DOCFLOW_SECRETS_DIR": str(tmp_path)}).url == URL


def test_a_folder_may_hold_only_some_secrets(file: Path) -> None:
    environment = {
        "DOCFLOW_SECRETS_DIR": str(file.parent),
        "AZURE_SERVICE_BUS_CONNECTION_STRING": "Endpoint=sb://bus",
    }
    assert QueueSettings.read(environment).connection_string == "Endpoint=sb://bus"
    assert DatabaseSettings.read(environment).url == URL


@pytest.mark.parametrize(
    "ways",
    [
        ("DATABASE_URL", "DATABASE_URL_FILE"),
        ("DATABASE_URL", "DOCFLOW_SECRETS_DIR"),
        ("DATABASE_URL_FILE", "DOCFLOW_SECRETS_DIR"),
    ],
)
def test_a_secret_that_is_given_twice_is_refused(file: Path, ways: tuple[str, ...]) -> None:
    given = {
        "DATABASE_URL": URL,
        "DATABASE_URL_FILE": str(file),
        "DOCFLOW_SECRETS_DIR": str(file.parent),
    }
    with pytest.raises(SettingsError, match="DATABASE_URL is given more than once") as failure:
        DatabaseSettings.read({way: given[way] for way in ways})
    assert all(way in str(failure.value) for way in ways)
    assert len(failure.value.problems) == 1
    assert "hidden" not in str(failure.value)


def test_a_blank_variable_beside_a_file_counts_as_not_set(file: Path) -> None:
    environment = {"DATABASE_URL": " ", "DATABASE_URL_FILE": str(file)}
    assert DatabaseSettings.read(environment).url == URL


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "DATABASE_URL has an empty file: write the secret into"),
        (b"\n", "DATABASE_URL has an empty file"),
        (b"\xff\xfehidden", "DATABASE_URL cannot be read from its file .*not UTF-8"),
        (b"mysql://hidden@db", "DATABASE_URL: database 'mysql' is not supported"),
    ],
)
def test_a_file_that_holds_no_secret_is_refused(file: Path, content: bytes, reason: str) -> None:
    file.write_bytes(content)
    with pytest.raises(SettingsError, match=reason) as failure:
        DatabaseSettings.read({"DATABASE_URL_FILE": str(file)})
    assert len(failure.value.problems) == 1
    assert "hidden" not in str(failure.value)


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot be read from its file .*directory"):
        DatabaseSettings.read({"DATABASE_URL_FILE": str(tmp_path)})


def test_problems_of_files_are_named_with_the_others(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as failure:
        CloudSettings.read(
            {
                "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY_FILE": str(tmp_path / "missing"),
                "AWS_ENDPOINT_URL": "emulator",
            }
        )
    assert len(failure.value.problems) == 3
    assert failure.value.problems[0].startswith(
        "AWS_SECRET_ACCESS_KEY cannot be read from its file"
    )


@pytest.mark.parametrize(
    ("group", "environment"),
    [
        (GatewaySettings, {"DOCFLOW_JWT_KEY_FILE": "/missing"}),
        (
            CloudSettings,
            {"AWS_REGION": "x", "AWS_ACCESS_KEY_ID_FILE": "/missing", "AWS_SECRET_ACCESS_KEY": "y"},
        ),
        (BlobSettings, {"AZURE_STORAGE_CONNECTION_STRING_FILE": "/missing"}),
    ],
)
def test_a_file_that_is_missing_is_the_only_problem(
    group: type[Settings], environment: dict[str, str]
) -> None:
    with pytest.raises(SettingsError, match="cannot be read from its file") as failure:
        group.read(environment)
    assert len(failure.value.problems) == 1


def test_a_folder_of_secrets_that_is_missing_is_refused_once(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with pytest.raises(SettingsError) as failure:
        CloudSettings.read({"DOCFLOW_SECRETS_DIR": missing, "AWS_REGION": "eu-central-1"})
    assert failure.value.problems == (
        "DOCFLOW_SECRETS_DIR must be a folder with a file for each secret: "
        f"{missing!r} cannot be read (No such file or directory)",
    )


def test_files_that_nothing_reads_are_named(tmp_path: Path) -> None:
    for name in ("docflow_jwt_kee", "docflow_scratch", "database_url", "other", "..data"):
        (tmp_path / name).write_text("hidden")
    warnings = list(unread_names({"DOCFLOW_SECRETS_DIR": str(tmp_path)}))
    assert [warning.partition(" in ")[0] for warning in warnings] == [
        "the file 'docflow_jwt_kee'",
        "the file 'docflow_scratch'",
    ]
    assert "did you mean DOCFLOW_JWT_KEY?" in warnings[0]
    assert "hidden" not in "".join(warnings)
