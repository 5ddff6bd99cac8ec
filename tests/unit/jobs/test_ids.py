"""The same request over the same bytes is the same job."""

import pytest

from activities.jobs.types.hello_world import HelloWorld
from workflows.jobs.records import InputIdentity, JsonObject
from workflows.jobs.runs import job_id
from workflows.shared.errors import RuleViolation

DEFINITION = HelloWorld.definition
SCENE = InputIdentity(uri="bronze://scene.tif", size=9, etag="a")
OTHER = InputIdentity(uri="bronze://other.tif", size=9, etag="b")


def test_neither_order_nor_spelling_of_parameters_counts() -> None:
    one = job_id(DEFINITION, {"a": 1, "b": {"c": [2.0, "x"]}}, (SCENE, OTHER))
    other = job_id(DEFINITION, {"b": {"c": [2, "x"]}, "a": 1.0}, (OTHER, SCENE))
    assert one == other
    assert len(one) == 64 and set(one) <= set("0123456789abcdef")


def test_whatever_is_done_or_read_otherwise_is_another_job() -> None:
    newer = DEFINITION.model_copy(update={"version": 2})
    renamed = DEFINITION.model_copy(update={"job_type": "hello_moon"})
    ids = {
        job_id(DEFINITION, {"n": 1}, (SCENE,)),
        job_id(newer, {"n": 1}, (SCENE,)),
        job_id(renamed, {"n": 1}, (SCENE,)),
        job_id(DEFINITION, {"n": 2}, (SCENE,)),
        job_id(DEFINITION, {"n": "1"}, (SCENE,)),
        job_id(DEFINITION, {"n": True}, (SCENE,)),
        job_id(DEFINITION, {"n": 1}, ()),
        job_id(DEFINITION, {"n": 1}, (SCENE.model_copy(update={"etag": "b"}),)),
        job_id(DEFINITION, {"n": 1}, (SCENE.model_copy(update={"size": 10}),)),
        job_id(DEFINITION, {"n": 1}, (SCENE.model_copy(update={"sha256": "c" * 64}),)),
    }
    assert len(ids) == 10


def test_the_same_bytes_under_another_etag_are_the_same_where_their_hash_is_known() -> None:
    known = SCENE.model_copy(update={"sha256": "c" * 64})
    copied = known.model_copy(update={"etag": "z"})
    assert job_id(DEFINITION, {}, (known,)) == job_id(DEFINITION, {}, (copied,))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_lacks_is_refused(number: float) -> None:
    with pytest.raises(RuleViolation, match="NaN or infinite"):
        job_id(DEFINITION, {"n": number}, ())


@pytest.mark.parametrize("parameters", [{"name": "\ud800"}, {"\ud800": 1}, {"a": ["\udfff"]}])
def test_half_a_surrogate_pair_is_refused(parameters: JsonObject) -> None:
    with pytest.raises(RuleViolation, match="surrogate pair"):
        job_id(DEFINITION, parameters, ())
