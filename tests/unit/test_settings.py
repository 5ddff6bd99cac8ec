"""Settings are named when they are missing or make no sense."""

from pathlib import Path

import pytest

from workers.settings import (
    BlobSettings,
    DatabaseSettings,
    QueueSettings,
    RunSettings,
    SettingsError,
)

CONNECTION = "Endpoint=sb://127.0.0.1;SharedAccessKeyName=a;SharedAccessKey=b"


def test_defaults_are_those_of_the_queue_it_replaces() -> None:
    settings = QueueSettings.read({"AZURE_SERVICE_BUS_CONNECTION_STRING": CONNECTION})
    assert settings == QueueSettings(CONNECTION, "import-queue", 10, 30)


def test_every_queue_setting_is_read() -> None:
    settings = QueueSettings.read(
        {
            "AZURE_SERVICE_BUS_CONNECTION_STRING": CONNECTION,
            "AZURE_SERVICE_BUS_QUEUE_NAME": "other",
            "MAX_MESSAGES_PER_RUN": "25",
            "MAX_WAIT_TIME_SECONDS": "5",
        }
    )
    assert settings == QueueSettings(CONNECTION, "other", 25, 5)


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (QueueSettings.read, "AZURE_SERVICE_BUS_CONNECTION_STRING"),
        (BlobSettings.read, "AZURE_STORAGE_CONNECTION_STRING"),
        (DatabaseSettings.read, "DATABASE_URL"),
    ],
)
@pytest.mark.parametrize("environment", [{}, {"empty": ""}])
def test_a_missing_setting_is_named(read, name: str, environment: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match=name):
        read({**environment, **({name: ""} if environment else {})})


@pytest.mark.parametrize("value", ["ten", "0", "1001", "1.5", "-1"])
def test_a_number_out_of_range_is_named(value: str) -> None:
    with pytest.raises(SettingsError, match="MAX_MESSAGES_PER_RUN"):
        QueueSettings.read(
            {"AZURE_SERVICE_BUS_CONNECTION_STRING": CONNECTION, "MAX_MESSAGES_PER_RUN": value}
        )


def test_a_folder_takes_the_place_of_a_storage_account(tmp_path: Path) -> None:
    settings = BlobSettings.read({"DOCFLOW_BLOB_FOLDER": str(tmp_path)})
    assert settings == BlobSettings(None, "imports", tmp_path / "imports")


@pytest.mark.parametrize("url", ["mysql://host/name", "not a url", "sqlite://"])
def test_a_database_that_is_not_supported_is_named(url: str) -> None:
    with pytest.raises(SettingsError, match="DATABASE_URL"):
        DatabaseSettings.read({"DATABASE_URL": url})


def test_run_settings_have_defaults() -> None:
    assert RunSettings.read({}) == RunSettings(1_000_000, 14, None)
