"""A request becomes a job, or a refusal that names its fields."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from activities.jobs.api import JobTypes
from activities.jobs.types.hello_world import HelloWorld
from activities.jobs.types.process_raster import ProcessRaster
from tests.support.jobs.submission import Secrets, SubmissionSetup
from workers.jobs.runs import StartedJob
from workers.jobs.submission import InvalidJob
from workflows.jobs.records import WebhookReceiver
from workflows.jobs.runs import JobRequest

HOOK = "https://hooks.example.org/done"
SECRET = "planted-secret-of-a-client"


@pytest.fixture
def setup(tmp_path: Path) -> SubmissionSetup:
    return SubmissionSetup(tmp_path)


async def submitted(setup: SubmissionSetup, **fields: Any) -> StartedJob:
    options = {name: fields.pop(name) for name in ("rerun", "limit") if name in fields}
    return await setup.service.submit(
        JobRequest(job_type="count_words", parameters=fields, **options)
    )


async def refused(setup: SubmissionSetup, **fields: Any) -> dict[str, str]:
    with pytest.raises(InvalidJob) as refusal:
        await submitted(setup, **fields)
    assert SECRET not in str(refusal.value)
    assert not setup.runs.orders
    return {each.location: each.message for each in refusal.value.errors}


async def test_the_same_request_over_the_same_bytes_is_the_same_job(
    setup: SubmissionSetup,
) -> None:
    await setup.put("a.txt")
    first = await submitted(setup, files=["a.txt"])
    same = await submitted(setup, size=2, files=["bronze://a.txt"])
    assert first.created
    # The parameter is another text, so the job is another one; spelled the same it is not.
    again = await submitted(setup, size=2, files=["a.txt"])
    assert (again.job_id, again.created) == (first.job_id, False)
    assert same.job_id != first.job_id
    await setup.put("a.txt", "a new file under an old name")
    assert (await submitted(setup, files=["a.txt"])).job_id != first.job_id


async def test_a_rerun_is_another_attempt_of_the_job(setup: SubmissionSetup) -> None:
    first = await submitted(setup)
    again = await submitted(setup, rerun=True)
    assert again.job_id == first.job_id
    assert (again.attempt, again.created) == (2, True)


async def test_a_trial_run_is_no_answer_to_a_request_for_the_whole(
    setup: SubmissionSetup,
) -> None:
    trial = await submitted(setup, limit=3)
    assert (await submitted(setup)).job_id != trial.job_id


async def test_inputs_are_resolved_to_what_they_are_now(setup: SubmissionSetup) -> None:
    for name in ("scenes/a.txt", "scenes/b.txt", "other.txt"):
        await setup.put(name)
    await setup.put("list.txt", "# today\nother.txt\n\nscenes/\n")
    await submitted(setup, files=["scenes/", "@list.txt"])
    found = setup.runs.orders[0].inputs
    assert [each.uri for each in found] == [
        "bronze://scenes/a.txt",
        "bronze://scenes/b.txt",
        "bronze://other.txt",
    ]
    assert all(each.etag and each.size == 5 for each in found)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("missing.txt", "there is no file 'missing.txt'"),
        ("nothing/", "holds no file"),
        ("@missing.txt", "there is no file 'missing.txt'"),
        ("@empty.txt", "lists no file"),
        ("@binary.txt", "is not UTF-8"),
        ("../secrets", "is not the name of a file"),
        ("@../secrets", "is not the name of a file"),
    ],
)
async def test_an_input_that_is_not_there_is_named(
    setup: SubmissionSetup, file: str, message: str
) -> None:
    await setup.put("empty.txt", "# nothing\n")
    path = setup.scratch / "binary"
    path.write_bytes(b"\xff\xfe\xff")
    await setup.bronze.upload(path, "binary.txt")
    assert message in (await refused(setup, files=[file]))["parameters"]


async def test_every_field_that_is_wrong_is_named(setup: SubmissionSetup) -> None:
    errors = await refused(setup, size=0, files=[3], sise=4)
    assert errors.keys() == {"parameters.size", "parameters.files.0", "parameters.sise"}
    assert errors["parameters.sise"] == "is not known; known are files, size"


async def test_texts_that_cannot_be_kept_are_named(setup: SubmissionSetup) -> None:
    for given, location in (
        ({"files": ["a\0b"]}, "parameters.files.0"),
        ({"nothing": {"a": [{"b": "\ud800"}]}}, "parameters.nothing.a.0.b"),
        ({"no\0thing": 1}, "parameters.no?thing"),
        ({"webhook_url": HOOK, "webhook_secret": "\0" + SECRET}, "parameters.webhook_secret"),
    ):
        assert location in await refused(setup, **given)


@pytest.mark.parametrize("name", ["", " ", "a\0b", "a\nb", "\x1b[31m", "\ud800"])
async def test_names_that_people_cannot_see_are_refused(name: str) -> None:
    for field in ("alias", "project"):
        with pytest.raises(ValidationError, match=field):
            JobRequest.model_validate({"job_type": "count_words", field: name})
    assert JobRequest(job_type="count_words", alias="größe-岩 / 3").alias == "größe-岩 / 3"


async def test_a_type_that_is_not_installed_is_refused(setup: SubmissionSetup) -> None:
    with pytest.raises(InvalidJob, match="'other' is not installed; there are: count_words"):
        await setup.service.submit(JobRequest(job_type="other"))


async def test_the_secret_of_a_webhook_goes_no_further_than_the_service(
    setup: SubmissionSetup,
) -> None:
    plain = await submitted(setup)
    setup.runs.orders.clear()
    given = {"webhook_url": [HOOK, f"{HOOK}/2"], "webhook_retry_count": 7}
    done = await submitted(setup, **given, webhook_secret=SECRET)
    (order,) = setup.runs.orders
    assert done.job_id == plain.job_id
    assert order.parameters == {"files": [], "size": 2}
    assert order.webhooks == tuple(
        WebhookReceiver(url=url, secret="kept:0", retry_count=7) for url in given["webhook_url"]
    )
    assert setup.secrets.kept == {"kept:0": SECRET}
    assert SECRET not in order.model_dump_json() + repr(done)


async def test_a_secret_of_the_settings_is_named(setup: SubmissionSetup) -> None:
    await submitted(setup, webhook_url=HOOK, webhook_secret_name="client")
    assert setup.runs.orders[0].webhooks[0].secret == "named:client"


async def test_receivers_of_a_job_that_ran_before_are_named_as_not_used(
    setup: SubmissionSetup,
) -> None:
    await submitted(setup)
    again = await submitted(setup, webhook_url=HOOK, webhook_secret=SECRET)
    assert "webhook_url is not used" in again.notes[0]
    assert not setup.secrets.kept


async def test_a_parameter_that_readers_of_json_give_up_at_is_refused(
    setup: SubmissionSetup,
) -> None:
    value: list[Any] = []
    for _ in range(200):
        value = [value]
    errors = await refused(setup, files=["a.txt"], size=value)
    assert errors == {"parameters.size": "is nested more than 64 levels deep"}


@pytest.mark.parametrize(
    ("given", "location", "message"),
    [
        ({"webhook_url": "http://a.org/"}, "webhook_url", "must begin with https://"),
        ({"webhook_url": "https://127.0.0.1/"}, "webhook_url", "not of the public internet"),
        ({"webhook_url": "https://[::1]/"}, "webhook_url", "not of the public internet"),
        ({"webhook_url": "https://169.254.169.254/"}, "webhook_url", "not of the public"),
        ({"webhook_url": "https://a.net/"}, "webhook_url", "DOCFLOW_WEBHOOK_HOSTS"),
        (
            {"webhook_url": [f"https://a.org/{n}" for n in range(11)]},
            "webhook_url",
            "more than 10 receivers",
        ),
        ({"webhook_secret": SECRET}, "webhook_secret", "of no use without webhook_url"),
        (
            {"webhook_url": "https://a.org", "webhook_secret": "whsec_" + SECRET},
            "webhook_secret",
            "not base64",
        ),
        (
            {
                "webhook_url": "https://a.org",
                "webhook_secret": SECRET,
                "webhook_secret_name": "client",
            },
            "webhook_secret",
            "not both",
        ),
        (
            {"webhook_url": "https://a.org", "webhook_secret_name": "other"},
            "webhook_secret",
            "there is no 'other'",
        ),
        ({"webhook_retry_count": 99}, "webhook_retry_count", "less than or equal to 20"),
        ({"webhook_secret": 600 * "s"}, "webhook_secret", "at most 500"),
    ],
)
async def test_a_webhook_that_cannot_be_used_is_refused(
    setup: SubmissionSetup, given: dict[str, Any], location: str, message: str
) -> None:
    setup.settings = {"hosts": ("a.org", "127.0.0.1", "::1", "169.254.169.254")}
    errors = await refused(setup, **given)
    assert message in errors[f"parameters.{location}"]


async def test_without_a_key_an_inline_secret_is_refused(setup: SubmissionSetup) -> None:
    setup.secrets = Secrets(key=False)
    errors = await refused(setup, webhook_url=HOOK, webhook_secret=SECRET)
    assert errors["parameters.webhook_secret"] == "DOCFLOW_WEBHOOK_KEY is not set"


@pytest.mark.parametrize(
    ("given", "name"),
    [({"target_crs": "IAU_2015:49900"}, "Mars (2015)"), ({"crs": "ESRI:104903"}, "GCS_Moon_2000")],
)
async def test_rasters_of_other_planets_are_refused_by_name(
    setup: SubmissionSetup, given: dict[str, str], name: str
) -> None:
    await setup.put("scene.tif")
    setup.types = JobTypes(ProcessRaster)
    request = JobRequest(job_type="process_raster", parameters={"source": "scene.tif", **given})
    with pytest.raises(InvalidJob, match=r"is not of the Earth") as error:
        await setup.service.submit(request)
    assert name in str(error.value)
    assert not setup.runs.orders


def test_a_type_names_its_file_and_files_beside_it(setup: SubmissionSetup) -> None:
    setup.types = JobTypes(ProcessRaster, HelloWorld)
    parameter, beside = setup.service.file_of("process_raster", "scene.tif")
    assert parameter == "source"
    assert {"scene.tif.msk", "scene.tfw"} <= set(beside)
    with pytest.raises(InvalidJob, match="takes no file"):
        setup.service.file_of("hello_world", "scene.tif")
