"""Secrets by reference."""

from pathlib import Path
from typing import Any

import pytest

from adapters.ports.errors import Denied, Unavailable
from adapters.secrets import ReferencedSecrets
from stack.children import free_port
from tests.support.aws import moto
from workers.transfers.resources import partner_secrets
from workflows.shared.dependencies import Dependency


async def test_a_variable_of_the_environment() -> None:
    secrets = ReferencedSecrets({"ACME": "planted-1", "DATABASE_URL": "x"}, {"DATABASE_URL"})
    assert await secrets.secret("env:ACME") == "planted-1"
    with pytest.raises(Denied, match="env:OTHER"):
        await secrets.secret("env:OTHER")
    with pytest.raises(Denied, match="docflow itself"):
        await secrets.secret("env:DATABASE_URL")


async def test_a_file_of_the_folders_for_secrets(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "acme").write_text("planted-2\n")
    (folder / "empty").write_text("\n")
    (folder / "binary").write_bytes(b"\xff\xfe")
    (folder / "out").symlink_to("../outside")
    (tmp_path / "outside").write_text("planted-3")
    secrets = ReferencedSecrets({}, folders=[folder])
    assert await secrets.secret(f"file:{folder}/acme") == "planted-2"
    for name in ("empty", "binary", "out", "none", "../outside"):
        with pytest.raises(Denied) as raised:
            await secrets.secret(f"file:{folder}/{name}")
        assert "planted" not in str(raised.value)


async def test_secrets_manager() -> None:
    import aioboto3

    with moto() as settings:
        session = aioboto3.Session("test", "test", region_name=settings.region)
        client: Any
        async with session.client("secretsmanager", endpoint_url=settings.endpoint_url) as client:
            await client.create_secret(Name="acme/sftp", SecretString="planted-4")
            await client.create_secret(Name="acme/json", SecretString='{"password": "planted-5"}')
        secrets = ReferencedSecrets({}, aws=settings)
        assert await secrets.secret("aws:acme/sftp") == "planted-4"
        assert await secrets.secret("aws:acme/json#password") == "planted-5"
        for reference in ("aws:acme/none", "aws:acme/json#user", "aws:acme/sftp#user"):
            with pytest.raises(Denied) as raised:
                await secrets.secret(reference)
            assert reference in str(raised.value)
            assert "planted" not in str(raised.value)


async def test_a_secrets_manager_that_does_not_answer_is_waited_for() -> None:
    from adapters.aws.session import AwsSettings

    settings = AwsSettings("eu-central-1", f"http://127.0.0.1:{free_port()}", "test", "test")
    with pytest.raises(Unavailable) as raised:
        await ReferencedSecrets({}, aws=settings).secret("aws:acme/sftp")
    assert raised.value.dependency is Dependency.CLOUD
    with pytest.raises(Denied, match="AWS_REGION"):
        await ReferencedSecrets({}).secret("aws:acme/sftp")


async def test_a_secret_that_was_looked_up_is_kept_for_a_while() -> None:
    environment = {"ACME": "planted-1"}
    secrets = ReferencedSecrets(environment)
    assert await secrets.secret("env:ACME") == "planted-1"
    environment["ACME"] = "planted-9"
    assert await secrets.secret("env:ACME") == "planted-1"
    assert "planted" not in repr(secrets)


async def test_no_partner_is_given_a_file_with_a_secret_of_docflow(tmp_path: Path) -> None:
    names = ("database_url", "AZURE_STORAGE_CONNECTION_STRING", "jwt", "payloads", "acme")
    for name in names:
        (tmp_path / name).write_text(f"planted-{name}")
    (tmp_path / "link").symlink_to("payloads")
    environment = {
        "DOCFLOW_SECRETS_DIR": str(tmp_path),
        "DOCFLOW_JWT_KEY_FILE": str(tmp_path / "jwt"),
        "DOCFLOW_PAYLOAD_KEYS": f"1=file:{tmp_path}/payloads",
        "DOCFLOW_TRANSFERS_SECRET_FOLDERS": str(tmp_path),
    }
    secrets = partner_secrets(environment)
    assert await secrets.secret(f"file:{tmp_path}/acme") == "planted-acme"
    for name in (*names[:-1], "link"):
        with pytest.raises(Denied, match="docflow itself"):
            await secrets.secret(f"file:{tmp_path}/{name}")
