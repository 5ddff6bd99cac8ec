"""What the embedded stack sets for its worker."""

from pathlib import Path

from stack.embedded import carrying_pointers
from workers.transfers.register import TRANSFERS


def test_files_can_be_carried_between_folders_of_the_stack(tmp_path: Path) -> None:
    pointers = carrying_pointers(tmp_path)
    assert TRANSFERS.available(pointers)
    TRANSFERS.settings(pointers)
    assert (tmp_path / "partners").is_dir()
    settings = tmp_path / "jobsettings.json"
    assert settings.read_text() == '{"Version": 1, "Jobs": []}\n'
    settings.write_text("{}")
    assert carrying_pointers(tmp_path) == pointers
    assert settings.read_text() == "{}", "what a person wrote stays"
