"""The file of identity providers: what is read, and what is refused with its place and a cure."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from workers.shared.errors import SettingsError
from workers.shared.settings.sign_in import read_providers

GOOD = """\
organisations: [4]
providers:
  entra:
    title: Microsoft
    issuer: https://login.example.com/tenant/v2.0
    client_id: docflow
    client_secret: ENTRA_SECRET
    claims: {groups: realm_access.roles}
    groups:
      admins: {roles: admin}
      "*": {roles: [viewer], organisations: [1, 2]}
"""
AROUND = {"DOCFLOW_PUBLIC_URL": "https://docflow.example.org", "ENTRA_SECRET": "s3cret"}


def _problems(folder: Path, text: str | None, **changes: str | None) -> tuple[str, ...]:
    file = folder / "sign-in.yaml"
    if text is not None:
        file.write_text(text)
    given = {**AROUND, "DOCFLOW_SIGN_IN": str(file), **changes}
    with pytest.raises(SettingsError) as refused:
        read_providers({name: value for name, value in given.items() if value is not None})
    return tuple(each.removeprefix(f"{file}: ") for each in refused.value.problems)


def test_without_a_file_there_are_no_providers() -> None:
    assert read_providers({}) == {}


def test_a_secret_comes_from_a_variable_or_its_file(tmp_path: Path) -> None:
    (tmp_path / "sign-in.yaml").write_text(GOOD)
    (tmp_path / "secret").write_text("s3cret\n")
    given = {**AROUND, "DOCFLOW_SIGN_IN": str(tmp_path / "sign-in.yaml")}
    by_file = {**given, "ENTRA_SECRET": "", "ENTRA_SECRET_FILE": str(tmp_path / "secret")}
    for environment in (given, by_file):
        [entra] = read_providers(environment).values()
        assert (entra.secret, entra.organisations) == ("s3cret", (4, 1, 2))
        assert entra.callback == "https://docflow.example.org/sign-in/entra/callback"
        assert entra.declared.groups["admins"].roles == ("admin",)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("title: Microsoft", "", "line 3: providers.entra.title: is missing; add it"),
        ("title:", "tite:", "line 4: providers.entra.tite: is not known here; remove it"),
        ("https://login", "http://login", "line 5: providers.entra.issuer: write the address"),
        ("ENTRA_SECRET", "s3cret", "line 7: providers.entra.client_secret: write the name of"),
        ("roles: admin", "roles: boss", "line 10: providers.entra.groups.admins.roles.1: this is"),
        ("[1, 2]", "[1, x]", "line 11: providers.entra.groups.*.organisations.2: this is no"),
        ("  entra:", "  Entra AD:", "line 3: providers.Entra AD: is no name; write small"),
        ("groups:\n", "groups: {\n", "line 11: this is not YAML"),
        (GOOD, "[]", "line 1: the file begins with `providers:`"),
        (GOOD, "x" * 300_000, "is larger than 256 KB"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, problem: str
) -> None:
    problems = _problems(tmp_path, GOOD.replace(old, new))
    assert any(each.startswith(problem) for each in problems), problems
    assert not any("s3cret" in each for each in problems)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"ENTRA_SECRET": None}, "providers.entra.client_secret: ENTRA_SECRET is not set; set it"),
        ({"DOCFLOW_PUBLIC_URL": None}, "missing setting: DOCFLOW_PUBLIC_URL; identity providers"),
        ({"DOCFLOW_SIGN_IN": "/nowhere.yaml"}, "DOCFLOW_SIGN_IN: /nowhere.yaml cannot be read"),
        ({"DOCFLOW_SESSION_HOURS": "0"}, "DOCFLOW_SESSION_HOURS must be between 1 and"),
    ],
)
def test_a_setting_that_the_file_needs_is_named(
    tmp_path: Path, changes: Mapping[str, str | None], problem: str
) -> None:
    [said] = _problems(tmp_path, GOOD, **changes)
    assert said.startswith(problem)
