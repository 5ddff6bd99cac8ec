"""The emulators are what their tests have passed with; `make emulators` runs these."""

from pathlib import Path

import pytest

from emulators import digest


def test_the_tests_of_the_emulators_have_passed_with_what_is_here() -> None:
    assert digest.is_tested(), "run `make emulators` and commit its digest"


def test_a_change_of_code_or_clients_asks_for_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, folder = tmp_path / "lock", tmp_path / "emulators"
    folder.mkdir()
    monkeypatch.setattr(digest, "_LOCK", lock)
    monkeypatch.setattr(digest, "FOLDER", folder)

    def of(text: str, version: str) -> str:
        (folder / "broker.py").write_text(text)
        lock.write_text(f"aiohttp==9\nazure-servicebus=={version} \\\n")
        return digest.digest()

    assert len({of("A = 1\n", "7"), of("A = 2\n", "7"), of("A = 2\n", "8")}) == 3
