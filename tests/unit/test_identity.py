"""Who acts, as the operating system names them, and what roles include."""

import os
import pwd
from typing import Any

import pytest

from workers.shared.services.identity import ROLES, Identity, acting_user

OWN = pwd.getpwuid(os.getuid()).pw_name


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"USER": "ada", "LOGNAME": "eve"}, "ada"),
        ({"USER": " ", "LOGNAME": "eve"}, "eve"),
        ({"USER": "x" * 300}, "x" * 200),
        ({}, OWN),
    ],
)
def test_a_local_command_acts_for_a_named_user(environment: dict[str, str], name: str) -> None:
    assert acting_user(environment) == name


def test_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> Any:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert acting_user({}) == f"uid {os.getuid()}"


def test_a_role_includes_those_before_it() -> None:
    for place, held in enumerate(ROLES):
        who = Identity("ann", (1,), frozenset({held}))
        assert [who.may(role, 1) for role in ROLES] == [n <= place for n in range(len(ROLES))]
        assert [who.may(role, 2) for role in ROLES] == [False] * len(ROLES)
