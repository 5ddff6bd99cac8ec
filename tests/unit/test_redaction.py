"""No secret reaches a log, whichever library logs it."""

from pathlib import Path

import pytest

from workers.shared.logs import HIDDEN, Redaction

ENVIRONMENT = {
    "DATABASE_URL": "postgresql://docflow:planted%2Fpass@db/docflow",
    "AZURE_STORAGE_CONNECTION_STRING": "AccountName=a;AccountKey=plantedkey==;EndpointSuffix=x",
    "DOCFLOW_NOTIFY_WEBHOOK_URL": "https://hooks.example.org/services/planted-token-of-hook?to=1",
    "DOCFLOW_BATCH_FUNCTION_ENVIRONMENT": '{"LOADER_PASSWORD": "planted-inner"}',
    "TEMPORAL_API_KEY": "planted-api-key",
    "DOCFLOW_BLOB_FOLDER": "/var/no-secret",
}


@pytest.mark.parametrize(
    "text",
    [
        "cannot connect to postgresql://docflow:planted%2Fpass@db/docflow",
        "password planted/pass refused",
        "signed with plantedkey==",
        "POST https://hooks.example.org/services/planted-token-of-hook answered 404",
        "the function has planted-inner",
        "metadata: planted-api-key",
    ],
)
def test_the_values_of_secret_settings_are_hidden_in_whole_and_in_part(text: str) -> None:
    shown = Redaction.of(ENVIRONMENT)(text)
    assert "planted" not in shown and HIDDEN in shown


@pytest.mark.parametrize(
    "text",
    [
        "GET https://a.blob.core.windows.net/c/b?sv=1&se=2&sig=planted%3D",
        "PUT https://b.s3.amazonaws.com/k?X-Amz-Credential=planted&X-Amz-Signature=planted",
        "Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=planted=",
        "amqps://user:planted@host/queue",
        "Authorization: Bearer planted.planted.planted",
        "token eyJplanted.planted-planted.planted_",
        "?token=planted",
        'answered {"password": "planted pass", "api_key" : "planted"}',
        "Server=db;PWD=planted",
        "pwd: planted",
    ],
)
def test_what_looks_like_a_secret_is_hidden_without_any_setting(text: str) -> None:
    shown = Redaction()(text)
    assert "planted" not in shown and HIDDEN in shown


SHORT = {
    "DATABASE_URL": "postgresql://docflow:pl4n@db/docflow",
    "DOCFLOW_SMTP_URL": "smtps://mail:mail@host",
    "DOCFLOW_NOTIFY_WEBHOOK_SECRET": "pl",
    "DOCFLOW_BATCH_FUNCTION_ENVIRONMENT": '{"LOADER_PASSWORD": "pl5", "STAGE": "test"}',
    "AZURE_STORAGE_CONNECTION_STRING": "AccountName=a;AccountKey=pl6=",
    "AZURE_SERVICE_BUS_CONNECTION_STRING": (
        "Endpoint=sb://127.0.0.1:5672;SharedAccessKeyName=docflow;SharedAccessKey=docflow;"
    ),
}


@pytest.mark.parametrize("secret", ["pl4n", "pl", "pl5", "pl6="])
def test_a_short_secret_is_hidden_where_it_stands_by_itself(secret: str) -> None:
    assert Redaction.of(SHORT)(f"refused: {secret}, and '{secret}'") == "refused: ***, and '***'"


@pytest.mark.parametrize(
    "text", ["supply a plan", "run `docflow setup`", "the mail server", "the test of a table"]
)
def test_no_ordinary_word_is_hidden_for_a_short_secret(text: str) -> None:
    assert Redaction.of(SHORT)(text) == text


def test_other_texts_stay_as_they_are() -> None:
    text = "import/P1/T1 at http://127.0.0.1:8000/imports/1: 3 rows in /var/no-secret"
    assert Redaction.of(ENVIRONMENT)(text) == text


def test_secrets_from_files_are_hidden(tmp_path: Path) -> None:
    (file := tmp_path / "key").write_text("planted-in-a-file\n")
    assert Redaction.of({"DOCFLOW_JWT_KEY_FILE": str(file)})("planted-in-a-file") == HIDDEN
