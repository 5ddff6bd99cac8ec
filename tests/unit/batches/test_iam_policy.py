"""The policy that the documentation gives the worker allows what it calls on AWS, and no more."""

import ast
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from adapters.aws.functions import DEAD_LETTERS, QUEUE
from adapters.aws.topic import FILTER_POLICIES
from workers.batches.settings import DEFAULT_PREFIX
from workflows.batches.names import LONGEST_PREFIX, BatchKey, names_of

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "batches.md").read_text()
ADAPTERS = sorted((ROOT / "adapters" / "aws").glob("*.py"))
CASE_EVENTS = (ROOT / "workers" / "shared" / "bridges" / "sqs.py",)
SERVICES = {"SQSClient": "sqs", "SNSClient": "sns", "LambdaClient": "lambda", "IAMClient": "iam"}
ALONG_WITH = {
    "lambda:CreateFunction": {"lambda:TagResource", "iam:PassRole"},
    # Without it the answer leaves the tags out.
    "lambda:GetFunction": {"lambda:ListTags"},
}
"""What AWS asks for beyond the action that is called as the method is."""
WITHOUT_RESOURCE = {
    "lambda:CreateEventSourceMapping",
    "lambda:DeleteEventSourceMapping",
    "lambda:ListEventSourceMappings",
    "lambda:ListFunctions",
    "lambda:UpdateEventSourceMapping",
    "sns:GetSubscriptionAttributes",
    "sns:SetSubscriptionAttributes",
    "sns:Unsubscribe",
    "sqs:ListQueues",
}
"""Actions that cannot be bound to a resource of which the name is known before."""


def _policies() -> list[dict[str, dict[str, Any]]]:
    blocks = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    policies = [said for block in blocks if "Statement" in (said := json.loads(block))]
    assert {policy["Version"] for policy in policies} == {"2012-10-17"}
    return [{each["Sid"]: each for each in policy["Statement"]} for policy in policies]


WORKER, WITH_GRANTS = _policies()
POLICY = WORKER | WITH_GRANTS
OF_FORMER_BATCHES = {"iam:DeleteRolePolicy", "iam:ListRolePolicies"}
"""For policies that releases before made; the page names them."""


def _listed(said: str | list[str]) -> set[str]:
    listed = [said] if isinstance(said, str) else said
    assert len(set(listed)) == len(listed), listed
    return set(listed)


def _clients(definition: ast.ClassDef) -> dict[str, str]:
    """Attributes of a class that hold a client, and its service."""
    services = {
        node.arg: SERVICES[str(node.annotation.value)]
        for node in ast.walk(definition)
        if isinstance(node, ast.arg)
        and isinstance(node.annotation, ast.Constant)
        and node.annotation.value in SERVICES
    }
    held: dict[str, str] = {}
    for node in ast.walk(definition):
        match node:
            case ast.Assign(targets=[ast.Attribute(attr=holder)], value=ast.Name(id=name)) if (
                name in services
            ):
                held[holder] = services[name]
            case _:
                continue
    return held


def _calls(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Service and method of every call on a client."""
    held = _clients(definition)
    for node in ast.walk(definition):
        match node:
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Attribute(value=ast.Name(id="self"), attr=holder), attr=method
                )
            ) if holder in held:
                paged = method == "get_paginator"
                yield held[holder], ast.literal_eval(node.args[0]) if paged else method
            case _:
                continue


def _needed(files: Sequence[Path]) -> set[str]:
    called = {
        f"{service}:{''.join(word.capitalize() for word in method.split('_'))}"
        for file in files
        for definition in ast.parse(file.read_text()).body
        if isinstance(definition, ast.ClassDef)
        for service, method in _calls(definition)
    }
    # What may be done with one message may be done with several of them.
    called = {action.removesuffix("Batch") for action in called}
    return called.union(*(ALONG_WITH.get(action, set()) for action in called))


def test_the_worker_may_do_exactly_what_it_calls() -> None:
    allowed = {sid: _listed(said["Action"]) for sid, said in POLICY.items()}
    case_events = allowed.pop("CaseEventsQueue")
    needed = _needed(ADAPTERS)
    assert {action.partition(":")[0] for action in needed} == set(SERVICES.values())
    assert set[str]().union(*allowed.values()) == needed - OF_FORMER_BATCHES
    assert all(f"`{action}`" in PAGE for action in OF_FORMER_BATCHES)
    assert case_events == _needed(CASE_EVENTS)


def test_the_worker_writes_no_policy_unless_something_is_granted() -> None:
    actions = [action for said in WORKER.values() for action in _listed(said["Action"])]
    assert [action for action in actions if action.startswith("iam:")] == ["iam:PassRole"]


def test_one_policy_of_the_role_allows_what_functions_do_with_queues_of_any_batch() -> None:
    policy = json.loads((ROOT / "deploy" / "lambda" / "role-policy.json").read_text())
    [statement] = policy["Statement"]
    assert _listed(statement["Action"]) == {*QUEUE, *DEAD_LETTERS}
    assert statement["Resource"] == WORKER["QueuesOfBatches"]["Resource"]


@pytest.mark.parametrize("sid", POLICY)
def test_a_statement_is_bound_to_what_is_docflows(sid: str) -> None:
    statement = POLICY[sid]
    assert statement["Effect"] == "Allow"
    actions, resources = _listed(statement["Action"]), _listed(statement["Resource"])
    assert actions.isdisjoint(WITHOUT_RESOURCE) or resources == {"*"}
    if resources == {"*"}:
        assert actions <= WITHOUT_RESOURCE
    else:
        services = {action.partition(":")[0] for action in actions}
        assert {arn.split(":")[2] for arn in resources} == services
        assert all(re.fullmatch(r"arn:aws:[a-z]+:[a-z0-9-]*:\d{12}:\S+", arn) for arn in resources)
    assert (statement.get("Condition") is not None) == bool(
        actions & {"iam:PassRole", "lambda:CreateEventSourceMapping"}
    )


def test_names_of_batches_match_the_patterns() -> None:
    names = names_of(DEFAULT_PREFIX, BatchKey(case_id=7, batch_id=1))
    mapped = POLICY["MappingsOfBatches"]["Condition"]["ArnLike"]["lambda:FunctionArn"]
    functions = POLICY["FunctionsOfBatches"]["Resource"]
    queues = POLICY["QueuesOfBatches"]["Resource"]
    assert mapped == functions
    for pattern, name in (
        (functions, names.function),
        (queues, names.queue),
        (queues, names.dead_letters),
    ):
        stem, star = pattern.rsplit(":", 1)[-1].split("*")
        assert name.startswith(stem) and not star


def test_the_limits_of_aws_are_those_that_are_checked() -> None:
    assert f"{FILTER_POLICIES} filter policies fit a topic" in PAGE
    assert f"A prefix has up to {LONGEST_PREFIX} characters" in PAGE
