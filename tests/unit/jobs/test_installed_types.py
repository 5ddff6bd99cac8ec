"""What every job type that comes with docflow keeps to."""

import pytest

from activities.jobs.api import JobType, JobTypes

TYPES = JobTypes.installed()


@pytest.mark.parametrize("name", TYPES)
def test_a_type_that_reads_a_file_takes_one_with_its_request(name: str) -> None:
    job_type = TYPES[name]
    reads = type(job_type).inputs is not JobType.inputs
    assert (job_type.file_parameter is not None) == reads
    assert not reads or job_type.file_parameter in job_type.parameters.model_fields
