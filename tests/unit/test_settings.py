"""Settings are named when they are missing or make no sense."""

import tempfile
from pathlib import Path

import pytest

from adapters.aws.blobs import Bucket, S3Blobs
from adapters.log_notifications import LogNotifications, MailServer
from adapters.mail_notifications import SmtpNotifications
from adapters.webhook_notifications import WebhookNotifications
from workers.imports.settings import QueueSettings, RunSettings
from workers.shared.errors import SettingsError
from workers.shared.resources import open_notices
from workers.shared.settings.common import (
    BlobSettings,
    DatabaseSettings,
    NotificationSettings,
    ScratchSettings,
)
from workers.shared.tables import open_blobs

CONNECTION = "Endpoint=sb://127.0.0.1;SharedAccessKeyName=a;SharedAccessKey=b"


def test_defaults_are_those_of_the_queue_it_replaces() -> None:
    settings = QueueSettings.read({"AZURE_SERVICE_BUS_CONNECTION_STRING": CONNECTION})
    assert settings == QueueSettings(
        connection_string=CONNECTION,
        queue_name="import-queue",
        max_messages=10,
        max_wait_seconds=30,
    )


def test_every_queue_setting_is_read() -> None:
    settings = QueueSettings.read(
        {
            "AZURE_SERVICE_BUS_CONNECTION_STRING": CONNECTION,
            "AZURE_SERVICE_BUS_QUEUE_NAME": "other",
            "MAX_MESSAGES_PER_RUN": "25",
            "MAX_WAIT_TIME_SECONDS": "5",
        }
    )
    assert settings == QueueSettings(
        connection_string=CONNECTION, queue_name="other", max_messages=25, max_wait_seconds=5
    )


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
    assert settings.connection_string is None
    assert settings.container == "imports"
    assert settings.folder == tmp_path / "imports"


def test_a_bucket_takes_the_place_of_a_storage_account() -> None:
    given = {
        "DOCFLOW_BLOB_BUCKET": "acme-documents",
        "DOCFLOW_BLOB_REGION": "eu-central-1",
        "DOCFLOW_BLOB_ENDPOINT_URL": "https://store.example/",
        "DOCFLOW_BLOB_ACCESS_KEY_ID": "key",
        "DOCFLOW_BLOB_SECRET_ACCESS_KEY": "planted",
    }
    settings = BlobSettings.read(given)
    bucket = Bucket("acme-documents", "eu-central-1", "https://store.example", "key", "planted")
    assert settings.bucket == bucket
    assert "planted" not in repr(bucket)
    assert isinstance(open_blobs(settings), S3Blobs)
    with pytest.raises(SettingsError, match="belong together"):
        BlobSettings.read({**given, "DOCFLOW_BLOB_ACCESS_KEY_ID": ""})
    with pytest.raises(SettingsError, match="DOCFLOW_BLOB_BUCKET must be the name of a bucket"):
        BlobSettings.read({**given, "DOCFLOW_BLOB_BUCKET": "Not a bucket"})


@pytest.mark.parametrize("url", ["mysql://host/name", "not a url", "sqlite://"])
def test_a_database_that_is_not_supported_is_named(url: str) -> None:
    with pytest.raises(SettingsError, match="DATABASE_URL"):
        DatabaseSettings.read({"DATABASE_URL": url})


def test_run_settings_have_defaults() -> None:
    assert RunSettings.read({}) == RunSettings(small_document_bytes=1_000_000, park_for_days=14)


def test_files_are_read_in_a_folder_of_the_system_unless_one_is_set() -> None:
    assert ScratchSettings.read({}).folder == Path(tempfile.gettempdir()) / "docflow"
    assert ScratchSettings.read({"DOCFLOW_SCRATCH": "/scratch"}).folder == Path("/scratch")


NOTICES = {
    "DOCFLOW_NOTIFY_WEBHOOK_URL": "https://hooks.example.com/docflow",
    "DOCFLOW_NOTIFY_WEBHOOK_SECRET": "whsec_AAEC",
    "DOCFLOW_SMTP_URL": "smtps://docflow:p%40ss@mail.example.com",
    "DOCFLOW_NOTIFY_FROM": "docflow@example.com",
    "DOCFLOW_ESCALATE_TO": "ops@example.com, boss@example.com",
}


def test_every_notice_setting_is_read() -> None:
    settings = NotificationSettings.read(NOTICES)
    assert settings.webhook_url == "https://hooks.example.com/docflow"
    assert settings.webhook_secret == b"\x00\x01\x02"
    assert settings.mail_server == MailServer("mail.example.com", 465, "smtps", "docflow", "p@ss")
    assert settings.sender == "docflow@example.com"
    assert settings.escalate_to == ("ops@example.com", "boss@example.com")


@pytest.mark.parametrize(
    ("named", "value"),
    [
        ("DOCFLOW_NOTIFY_WEBHOOK_URL", "ftp://hidden"),
        ("DOCFLOW_NOTIFY_WEBHOOK_SECRET", "whsec_*hidden"),
        ("DOCFLOW_SMTP_URL", "smtp://docflow:hidden@mail"),
        ("DOCFLOW_SMTP_URL", "imap://hidden"),
        ("DOCFLOW_NOTIFY_FROM", "docflow"),
        ("DOCFLOW_NOTIFY_FROM", ""),
        ("DOCFLOW_ESCALATE_TO", "ops@example.com,,"),
        ("DOCFLOW_NOTIFY_POLICY", "parked"),
        ("DOCFLOW_NOTIFY_POLICY", '{"default": {"kinds": ["parks"]}}'),
        ("DOCFLOW_NOTIFY_POLICY", '{"default": {"to": ["ops"]}}'),
        ("DOCFLOW_NOTIFY_POLICY", '{"default": {"remind_after_hours": 0}}'),
        ("DOCFLOW_NOTIFY_POLICY", '{"default": {"remind_each": 1}}'),
    ],
)
def test_a_notice_setting_that_makes_no_sense_is_named(named: str, value: str) -> None:
    with pytest.raises(SettingsError, match=named) as failure:
        NotificationSettings.read({**NOTICES, named: value})
    assert "hidden" not in str(failure.value)


def test_secrets_are_not_shown_with_the_settings() -> None:
    shown = repr(NotificationSettings.read(NOTICES))
    assert "p@ss" not in shown and "x01" not in shown


@pytest.mark.parametrize(
    ("settings", "channels"),
    [
        (NOTICES, [WebhookNotifications, SmtpNotifications]),
        ({"DOCFLOW_NOTIFY_WEBHOOK_URL": "http://hook.local/"}, [WebhookNotifications]),
        ({"DOCFLOW_ESCALATE_TO": "ops@example.com"}, [LogNotifications]),
    ],
)
def test_notices_go_every_way_that_is_set(settings: dict[str, str], channels: list[type]) -> None:
    opened = open_notices(NotificationSettings.read(settings))
    assert [type(channel) for channel in opened.values()] == channels
