"""Settings of Temporal that cannot work are refused with a sentence, and none is ignored."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.cli import run_docflow
from workers.cli.context import CliContext
from workers.connect import connect, read_config
from workers.settings.errors import SettingsError

KEY = "planted-secret"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"TEMPORAL_PROFILE": "nosuch"}, "'nosuch' not found; TEMPORAL_PROFILE is nosuch"),
        ({"TEMPORAL_CONFIG_FILE": "/nowhere"}, "TEMPORAL_CONFIG_FILE: there is no file /nowhere"),
        ({"TEMPORAL_CONFIG_FILE": "/"}, "TEMPORAL_CONFIG_FILE: there is no file /"),
        ({"TEMPORAL_TLS": "maybe"}, "TEMPORAL_TLS must be true or false, not 'maybe'"),
        ({"TEMPORAL_TLS": "no"}, "TEMPORAL_TLS must be true or false, not 'no'"),
        (
            {"TEMPORAL_TLS": "true", "TEMPORAL_TLS_CLIENT_CERT_PATH": "/nowhere"},
            "cannot be read: /nowhere: No such file or directory",
        ),
        ({"TEMPORAL_API_KEY_FILE": "/nowhere"}, "TEMPORAL_API_KEY cannot be read from its file"),
    ],
)
def test_a_setting_of_temporal_that_cannot_work_is_named(
    settings: Mapping[str, str], reason: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        read_config(settings)
    [problem] = refused.value.problems
    assert reason in problem


def test_a_file_that_cannot_be_read_is_named_without_its_content(tmp_path: Path) -> None:
    file = tmp_path / "temporal.toml"
    file.write_text(f'[profile.default]\napi_key = "{KEY}\n')
    with pytest.raises(SettingsError) as refused:
        read_config({"TEMPORAL_CONFIG_FILE": str(file)})
    assert f"TEMPORAL_CONFIG_FILE is {file}" in str(refused.value)
    assert KEY not in f"{refused.value!r}{refused.value.__cause__!r}"


@pytest.mark.parametrize(("word", "tls"), [("TRUE", True), ("1", True), ("false", False)])
def test_tls_is_a_flag(word: str, tls: bool) -> None:
    assert bool(read_config({"TEMPORAL_TLS": word}).get("tls")) is tls


def test_a_blank_setting_counts_as_not_set() -> None:
    blank = ("TEMPORAL_TLS", "TEMPORAL_CONFIG_FILE", "TEMPORAL_PROFILE", "TEMPORAL_API_KEY")
    assert read_config(dict.fromkeys(blank, " ")) == {}


def test_the_api_key_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "temporal_api_key").write_text(f"{KEY} \n")
    assert read_config({"DOCFLOW_SECRETS_DIR": str(tmp_path)}).get("api_key") == KEY
    named = {"TEMPORAL_API_KEY_FILE": str(tmp_path / "temporal_api_key")}
    assert read_config(named).get("api_key") == KEY


async def test_an_address_that_is_none_is_named() -> None:
    with pytest.raises(SettingsError, match="invalid port number; TEMPORAL_ADDRESS is host:port"):
        await connect("localhost:x")


def test_status_names_a_wrong_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPORAL_PROFILE", "nosuch")
    done = run_docflow("status", "--json", context=CliContext({}))
    assert done.exit_code == 1
    assert "TEMPORAL_PROFILE is nosuch" in done.stdout
